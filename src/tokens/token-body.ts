/**
 * Parses what callers send about tokens (handbook/tokens.md): limits at the top level or in `bindings`, an expiry as a
 * length or an instant. Null means no limit. An absent limit is inherited, from the creator or the source.
 */
import { z } from 'zod'
import { Failure } from '../failure.ts'
import { labels, nameText, noteText } from '../identity/free-text.ts'
import { keyClasses } from '../identity/key-class.ts'
import { roles } from '../identity/permissions.ts'
import { isWholeNano, largestAmount } from '../lib/money.ts'
import { principalTypes, purposes } from './governed-token.ts'

export const tokenName = nameText(200)

export const tokenMetadata = labels

const dollars = z
  .number()
  .positive()
  .max(largestAmount)
  .refine(isWholeNano, 'An amount has at most nine decimals: the least is a nano-dollar')
  .describe('US dollars')
const count = z.number().int().min(1).max(Number.MAX_SAFE_INTEGER)

const limits = {
  max_budget: dollars.nullish(),
  max_requests: count.nullish(),
  rate_limit_rpm: count.nullish(),
  rate_limit_tpm: count.nullish(),
}

export const tokenBindings = z.strictObject({
  gateway_id: z.uuid().nullish(),
  team_id: z.uuid().nullish(),
  user_id: z.uuid().nullish(),
  provider: z.string().min(1).max(200).nullish().describe("A provider's name"),
  model_filter: z.array(z.string().min(1).max(200)).min(1).max(200).nullish().describe('Exact model ids or * globs'),
  budget_id: z.uuid().nullish(),
  ...limits,
})

const expiry = {
  expires_in_seconds: z.number().int().min(60).max(315_360_000).nullish(),
  expires_at: z.iso.datetime({ offset: true, error: 'Write a time as 2030-01-31T12:00:00Z' }).nullish(),
}

const mcpTools = z
  .enum(['listed', 'searched'])
  .describe('listed: each tool of MCP servers is shown; searched: two tools that find and call them')

export const createTokenBody = z.strictObject({
  name: tokenName,
  purpose: z.enum(purposes),
  principal_type: z.enum(principalTypes).default('api_token'),
  key_class: z.enum(keyClasses).default('durable'),
  bindings: tokenBindings.nullish(),
  roles: z.array(z.enum(roles)).min(1).max(roles.length).nullish(),
  policy_ids: z.array(z.uuid()).max(100).optional().describe('Left out: those of the calling token'),
  access_policy_ids: z.array(z.uuid()).max(100).optional().describe('Left out: those of the calling token'),
  metadata_trust: z.enum(['none', 'caller']).default('none'),
  mcp_tools: mcpTools.default('listed'),
  metadata: tokenMetadata.default({}),
  ...limits,
  ...expiry,
})
export type CreateTokenBody = z.infer<typeof createTokenBody>

/**
 * The limits that may be narrowed. Absent ones are inherited; null, the widest, is refused if the source has a limit.
 */
const narrowing = {
  bindings: tokenBindings.optional(),
  policy_ids: z.array(z.uuid()).max(100).optional(),
  access_policy_ids: z.array(z.uuid()).max(100).optional(),
  metadata_trust: z.enum(['none', 'caller']).optional(),
  mcp_tools: mcpTools.optional(),
  ...limits,
  ...expiry,
}

export const updateTokenBody = z.strictObject({
  name: tokenName.optional(),
  metadata: tokenMetadata.optional(),
  roles: z.array(z.enum(roles)).min(1).max(roles.length).optional(),
  purpose: z.enum(purposes).optional().describe('Cannot change: another one is refused'),
  principal_type: z.enum(principalTypes).optional().describe('Cannot change: another one is refused'),
  ...narrowing,
})
export type UpdateTokenBody = z.infer<typeof updateTokenBody>

export const cloneTokenBody = z.strictObject({
  name: tokenName.optional(),
  metadata: tokenMetadata.optional().describe('Keys to add'),
  reason: noteText(500).min(1).optional(),
  ...narrowing,
})
export type CloneTokenBody = z.infer<typeof cloneTokenBody>

/** The fields of a scope in a body. */
export type NarrowingBody = Pick<CloneTokenBody, Exclude<keyof typeof narrowing, 'bindings'>> &
  Pick<CreateTokenBody, 'bindings'>

type LimitName = keyof typeof limits
type Limits = { [Name in LimitName]?: number | null | undefined }

/** A limit from either place; both with different values is 422. Undefined where it is in neither. */
export function limitOf(body: Limits & { bindings?: Limits | null | undefined }, name: LimitName) {
  const top = body[name]
  const bound = body.bindings?.[name]
  if (top !== undefined && bound !== undefined && top !== bound) {
    throw new Failure('invalid_parameter', { message: `${name} and bindings.${name} differ: send one`, param: name })
  }
  return top ?? bound ?? (top === null || bound === null ? null : undefined)
}

/** When a token ends; undefined if the body does not say. Both forms at once, or a time in the past, are 422. */
export function expiryOf(
  body: { expires_in_seconds?: number | null | undefined; expires_at?: string | null | undefined },
  now: number,
): number | null | undefined {
  const { expires_in_seconds: seconds, expires_at: instant } = body
  if (typeof seconds === 'number' && typeof instant === 'string') {
    const message = 'Send expires_at or expires_in_seconds, not both'
    throw new Failure('invalid_parameter', { message, param: 'expires_at' })
  }
  if (typeof seconds === 'number') return now + seconds * 1000
  if (typeof instant !== 'string') return seconds === undefined && instant === undefined ? undefined : null
  const at = Date.parse(instant)
  if (!(at > now)) {
    throw new Failure('invalid_parameter', { message: 'expires_at must lie in the future', param: 'expires_at' })
  }
  return at
}

/** How many slots a limit a minute has, from the state. */
import { z } from 'zod'
import { Failure } from '../../failure.ts'
import { type LimitKey, type LimitRow, type LimitRows, toolDigest } from '../../store/limit-rows.ts'

interface SlotLimit {
  key: LimitKey
  unit: 'requests_per_minute' | 'tokens_per_minute'
  /** For an access policy: whether the account is of a single token. */
  scope: LimitRow['scope']
  /** For an MCP server: the digest of the tool; null for all requests to it. */
  tool: string | null
  /** For a consumer group or an access policy: whether the account is of one value of a dimension. */
  ofValue: boolean
}

/** A digest has no hyphens, and an id has some. */
const form =
  /^(group|access|token|server)\/([^/]+)\/(?:(?![0-9a-f]{32}\/)([^/]+)\/)?(?:([0-9a-f]{32})\/)?(requests|tokens)$/
const rowKinds: Readonly<Record<string, 'group' | 'policy' | 'account' | 'server'>> = {
  group: 'group',
  access: 'policy',
  token: 'account',
  server: 'server',
}

/**
 * Parses an account name: `group/<id>/requests`, `access/<id>/<token>/requests` for a policy with rates for each token,
 * either with `<digest>/` before the unit where the rates are for each value of a dimension, or
 * `server/<id>/<digest>/requests` for a tool of an MCP server. Null if it is invalid.
 */
function readSlotAccount(account: string): SlotLimit | null {
  const [, kind = '', id = '', token, digest, unit] = form.exec(account) ?? []
  const rowKind = rowKinds[kind]
  if (rowKind === undefined || (token !== undefined && rowKind !== 'policy')) return null
  if (digest !== undefined && rowKind === 'account') return null
  return {
    key: `${rowKind}/${id}`,
    unit: unit === 'tokens' ? 'tokens_per_minute' : 'requests_per_minute',
    scope: rowKind !== 'policy' ? null : token === undefined ? 'shared' : 'token',
    tool: rowKind === 'server' ? (digest ?? null) : null,
    ofValue: rowKind !== 'server' && digest !== undefined,
  }
}

/** The slots of a limit; 0 if there is no such limit. Throws `dependency_unavailable` if it cannot be read. */
export async function slotsOf(rows: LimitRows, account: string): Promise<number> {
  const named = readSlotAccount(account)
  if (named === null) return 0
  const row = (await rows.read([named.key])).get(named.key)
  if (row === undefined) throw new Failure('dependency_unavailable', { retryAfter: 1 })
  if (row === null || row.scope !== named.scope || (row.max_values !== null) !== named.ofValue) return 0
  return (named.tool === null ? row[named.unit] : toolLimit(row, named.tool)) ?? 0
}

const toolLimitsSchema = z.record(z.string(), z.object({ requests_per_minute: z.number().nullable() }))

function toolLimit({ tool_limits: text }: LimitRow, digest: string): number | null {
  const limits = Object.entries(toolLimitsSchema.parse(JSON.parse(text ?? '{}')))
  return limits.find(([tool]) => toolDigest(tool) === digest)?.[1].requests_per_minute ?? null
}

/** A request that waits, or waited, for a person (escalations/README.md): its row, its record, and its visibility. */
import type { SQL } from 'drizzle-orm'
import { and, desc, eq, getTableColumns, gt, gte, inArray, lt, lte, or, sql } from 'drizzle-orm'
import { z } from 'zod'
import { visibilityFor } from '../events/query/visibility-filter.ts'
import { Failure } from '../failure.ts'
import type { Principal } from '../identity/principal.ts'
import { timestamp } from '../lib/clock.ts'
import type { Database } from '../store/open.ts'
import { query, subquery } from '../store/query.ts'
import { teams, users } from '../store/schema/ledger/people.ts'
import { escalationAttempts, escalations, policies } from '../store/schema/ledger/policies.ts'
import { tokens } from '../store/schema/ledger/tokens.ts'

export const escalationStates = ['queued', 'claimed', 'deciding', 'resolved', 'expired'] as const
export type EscalationState = (typeof escalationStates)[number]
export const resolutions = escalations.resolution.enumValues

export type EscalationRow = typeof escalations.$inferSelect

/** A tool whose call waits for a person. */
export const escalatedCall = z.object({
  tool: z.string().max(500),
  arguments: z
    .string()
    .max(2000)
    .nullable()
    .describe('JSON without personal data and secrets, where the policy captures what it escalates; may be cut'),
})

const named = z.object({ id: z.string(), name: z.string().nullable() })
const instant = z.iso.datetime()

export const escalationSchema = z.object({
  id: z.uuid(),
  status: z.enum(escalationStates),
  token: named.extend({ revoked: z.boolean().describe('If true, a grant cannot be used') }),
  user_id: z.string().nullable(),
  user_name: z.string().nullable(),
  team_id: z.string().nullable(),
  team_name: z.string().nullable(),
  gateway_id: z.string().nullable(),
  policy: named,
  reason_code: z.string(),
  request: z.object({
    request_id: z.string().nullable(),
    route: z.string(),
    family: z.string(),
    model: z.string().nullable(),
    provider: z.string().nullable(),
    sent: z.boolean().default(false).describe('It had been sent, and its answer waits: leave sends it again'),
    targets: z.array(z.string()).describe('Where something was found, without the text itself'),
    calls: z.array(escalatedCall).default([]).describe('The tools whose call waits'),
    policy_version: z.number().int().nullable().default(null).describe('Of the policy when it stopped the request'),
    prompt_redacted: z
      .string()
      .nullable()
      .default(null)
      .describe('Its text without personal data and secrets, where the gateway captures it'),
    answer_redacted: z
      .string()
      .nullable()
      .default(null)
      .describe(
        'The text of the answer that waits, likewise; null where a request waits, or where it was not captured',
      ),
    digest: z.string().describe('The same for the same request'),
  }),
  attempts: z.number().int().describe('How often the same request came while it waited'),
  queued_at: instant,
  last_attempt_at: instant,
  expires_at: instant,
  claimed_by: z.string().nullable(),
  claimed_by_name: z.string().nullable(),
  claimed_at: instant.nullable(),
  resolution: z.enum(resolutions).nullable(),
  note: z.string().nullable(),
  resolved_by: z.string().nullable(),
  resolved_by_name: z.string().nullable(),
  resolved_at: instant.nullable().describe('Since when the decision is in effect'),
  takes_effect_at: instant.nullable().describe('Until then the decision can be undone'),
  grant: z.object({ id: z.uuid(), expires_at: instant }).nullable().describe('The leave to send the request once'),
  version: z.number().int().describe('Also the ETag'),
})
export type EscalationRecord = z.infer<typeof escalationSchema>

const requestSchema = escalationSchema.shape.request.omit({ digest: true })

/** The state at an instant: what has waited too long is expired, even without a background run. */
export const stateOf = ({ state, expiresAt }: EscalationRow, now: number): EscalationState => {
  if (state === 'applying') return 'deciding'
  return (state === 'queued' || state === 'claimed') && now >= expiresAt ? 'expired' : state
}

type Name = 'tokenName' | 'policyName' | 'userName' | 'teamName' | 'claimedByName' | 'resolvedByName'
export type NamedEscalation = EscalationRow & Record<Name, string | null> & { tokenRevoked: number | null }

export function escalationRecord(row: NamedEscalation, now: number): EscalationRecord {
  const status = stateOf(row, now)
  return {
    id: row.id,
    status,
    token: { id: row.tokenId, name: row.tokenName, revoked: row.tokenRevoked === 1 },
    user_id: row.userId,
    user_name: row.userName,
    team_id: row.teamId,
    team_name: row.teamName,
    gateway_id: row.gatewayId,
    policy: { id: row.policyId, name: row.policyName },
    reason_code: row.reasonCode,
    request: { ...requestSchema.parse(JSON.parse(row.request)), digest: row.digest },
    attempts: row.attempts,
    queued_at: timestamp(row.queuedAt),
    last_attempt_at: timestamp(row.lastAttemptAt),
    expires_at: timestamp(row.expiresAt),
    claimed_by: row.claimedBy,
    claimed_by_name: row.claimedByName,
    claimed_at: instantOf(row.claimedAt),
    resolution: row.resolution,
    note: row.note,
    resolved_by: row.resolvedBy,
    resolved_by_name: row.resolvedByName,
    resolved_at: status === 'deciding' ? null : instantOf(row.resolvedAt),
    takes_effect_at: status === 'deciding' ? instantOf(row.resolvedAt) : null,
    grant:
      row.grantId === null || row.grantExpiresAt === null
        ? null
        : { id: row.grantId, expires_at: timestamp(row.grantExpiresAt) },
    version: row.version,
  }
}

const instantOf = (milliseconds: number | null): string | null =>
  milliseconds === null ? null : timestamp(milliseconds)

/** What a person or token is called that is named as the actor of an event is: `user:<id>`. */
const actorName = (actor: typeof escalations.claimedBy | typeof escalations.resolvedBy) =>
  sql<string | null>`case
    when ${actor} like 'user:%' then (select name from users where users.id = substr(${actor}, 6))
    when ${actor} like 'token:%' then (select name from tokens where tokens.id = substr(${actor}, 7)) end`

const columns = {
  ...getTableColumns(escalations),
  tokenName: sql<string | null>`(select name from tokens where ${eq(tokens.id, escalations.tokenId)})`,
  tokenRevoked: sql<
    number | null
  >`(select revoked_at is not null from tokens where ${eq(tokens.id, escalations.tokenId)})`,
  policyName: sql<string | null>`(select name from policies where ${eq(policies.id, escalations.policyId)})`,
  userName: sql<string | null>`(select name from users where ${eq(users.id, escalations.userId)})`,
  teamName: sql<string | null>`(select name from teams where ${eq(teams.id, escalations.teamId)})`,
  claimedByName: actorName(escalations.claimedBy),
  resolvedByName: actorName(escalations.resolvedBy),
}

/** Escalations are visible as events are; undefined: all of them. */
async function visibleEscalations(ledger: Database, principal: Principal): Promise<SQL | undefined> {
  const { teams, ownTokens } = await visibilityFor(ledger, principal)
  if (teams === 'every') return undefined
  return teams.length > 0 ? inArray(escalations.teamId, [...teams]) : inArray(escalations.tokenId, [...ownTokens])
}

/** The escalation of this id, or the one of the attempt with this id. Throws `not_found`. */
export async function requireEscalation(ledger: Database, principal: Principal, id: string): Promise<NamedEscalation> {
  const visible = await visibleEscalations(ledger, principal)
  const ofAttempt = subquery
    .select({ id: escalationAttempts.escalationId })
    .from(escalationAttempts)
    .where(eq(escalationAttempts.id, id))
  const row = await query(ledger)
    .select(columns)
    .from(escalations)
    .where(and(sql`${escalations.id} = coalesce(${ofAttempt}, ${id})`, visible))
    .get()
  if (row === undefined) throw new Failure('not_found', { message: 'There is no such escalation' })
  return row
}

/** `open` is every state in which a person has not decided for good. */
export const escalationFilters = [...escalationStates, 'open'] as const

export interface EscalationFilters {
  status: (typeof escalationFilters)[number] | undefined
  /** Milliseconds since the epoch. */
  since: number | null
  /** The id before which the page begins. */
  before: string | null
  limit: number
}

/** A page, the newest first. */
export async function listEscalations(
  ledger: Database,
  principal: Principal,
  { status, since, before, limit }: EscalationFilters,
  now: number,
): Promise<NamedEscalation[]> {
  const visible = await visibleEscalations(ledger, principal)
  return await query(ledger)
    .select(columns)
    .from(escalations)
    .where(
      and(
        visible,
        stateCondition(status, now),
        gte(escalations.queuedAt, since ?? 0),
        before === null ? undefined : lt(escalations.id, before),
      ),
    )
    .orderBy(desc(escalations.id))
    .limit(limit)
}

function stateCondition(status: EscalationFilters['status'], now: number): SQL | undefined {
  const { state, expiresAt } = escalations
  const isDeciding = inArray(state, ['deciding', 'applying'])
  if (status === undefined) return undefined
  if (status === 'deciding') return isDeciding
  if (status === 'open') return or(isDeciding, and(inArray(state, ['queued', 'claimed']), gt(expiresAt, now)))
  if (status === 'resolved') return eq(state, 'resolved')
  if (status === 'expired') {
    return or(eq(state, 'expired'), and(inArray(state, ['queued', 'claimed']), lte(expiresAt, now)))
  }
  return and(eq(state, status), gt(expiresAt, now))
}

/** A request that waits, or waited, for a person (escalations/README.md): its row, its record, and its visibility. */
import { z } from 'zod'
import { visibilityFor, visibleTo } from '../events/query/query.ts'
import { Failure } from '../failure.ts'
import type { Principal } from '../identity/principal.ts'
import { timestamp } from '../lib/clock.ts'
import type { Database } from '../store/open.ts'
import { fromRow } from '../store/rows.ts'
import { escalations } from '../store/schema/ledger/policies.ts'
import type { Statement } from '../store/statement.ts'

export const escalationStates = ['queued', 'claimed', 'resolved', 'expired'] as const
export type EscalationState = (typeof escalationStates)[number]
export const resolutions = ['allow', 'block'] as const

export type EscalationRow = typeof escalations.$inferSelect

const named = z.object({ id: z.string(), name: z.string().nullable() })
const instant = z.iso.datetime()

export const escalationSchema = z.object({
  id: z.uuid(),
  status: z.enum(escalationStates),
  token: named,
  user_id: z.string().nullable(),
  team_id: z.string().nullable(),
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
    prompt_redacted: z
      .string()
      .nullable()
      .default(null)
      .describe('Its text without personal data and secrets, where the gateway captures it'),
    digest: z.string().describe('The same for the same request'),
  }),
  attempts: z.number().int().describe('How often the same request came while it waited'),
  queued_at: instant,
  last_attempt_at: instant,
  expires_at: instant,
  claimed_by: z.string().nullable(),
  claimed_at: instant.nullable(),
  resolution: z.enum(resolutions).nullable(),
  note: z.string().nullable(),
  resolved_by: z.string().nullable(),
  resolved_at: instant.nullable(),
  grant: z.object({ id: z.uuid(), expires_at: instant }).nullable().describe('The leave to send the request once'),
  version: z.number().int().describe('Also the ETag'),
})
export type EscalationRecord = z.infer<typeof escalationSchema>

const requestSchema = escalationSchema.shape.request.omit({ digest: true })

/** The state at an instant: what has waited too long is expired, even without a background run. */
export const stateOf = ({ state, expiresAt }: EscalationRow, now: number): EscalationState => {
  const known = z.enum(escalationStates).parse(state)
  return (known === 'queued' || known === 'claimed') && now >= expiresAt ? 'expired' : known
}

interface Names {
  token_name: string | null
  policy_name: string | null
}

export type NamedEscalation = EscalationRow & { names: Names }

export function escalationRecord(row: NamedEscalation, now: number): EscalationRecord {
  const status = stateOf(row, now)
  return {
    id: row.id,
    status,
    token: { id: row.tokenId, name: row.names.token_name },
    user_id: row.userId,
    team_id: row.teamId,
    gateway_id: row.gatewayId,
    policy: { id: row.policyId, name: row.names.policy_name },
    reason_code: row.reasonCode,
    request: { ...requestSchema.parse(JSON.parse(row.request)), digest: row.digest },
    attempts: row.attempts,
    queued_at: timestamp(row.queuedAt),
    last_attempt_at: timestamp(row.lastAttemptAt),
    expires_at: timestamp(row.expiresAt),
    claimed_by: row.claimedBy,
    claimed_at: instantOf(row.claimedAt),
    resolution: row.resolution === null ? null : z.enum(resolutions).parse(row.resolution),
    note: row.note,
    resolved_by: row.resolvedBy,
    resolved_at: instantOf(row.resolvedAt),
    grant:
      row.grantId === null || row.grantExpiresAt === null
        ? null
        : { id: row.grantId, expires_at: timestamp(row.grantExpiresAt) },
    version: row.version,
  }
}

const instantOf = (milliseconds: number | null): string | null =>
  milliseconds === null ? null : timestamp(milliseconds)

const columns = `e.*, (select name from tokens where id = e.token_id) as token_name,
  (select name from policies where id = e.policy_id) as policy_name`

const opened = (row: Record<string, unknown> & Names): NamedEscalation => ({
  ...fromRow(escalations, row),
  names: { token_name: row.token_name, policy_name: row.policy_name },
})

/** A condition on `team_id` or `token_id`: escalations are visible as events are. */
async function visibleEscalations(ledger: Database, principal: Principal): Promise<Statement> {
  return visibleTo(await visibilityFor(ledger, principal))
}

/** The escalation of this id, or the one of the attempt with this id. Throws `not_found`. */
export async function requireEscalation(ledger: Database, principal: Principal, id: string): Promise<NamedEscalation> {
  const visible = await visibleEscalations(ledger, principal)
  const [row] = await ledger.read<Record<string, unknown> & Names>(
    `select ${columns} from escalations e
      where e.id = coalesce((select escalation_id from escalation_attempts where id = ?), ?) and (${visible.sql})`,
    [id, id, ...visible.args],
  )
  if (row === undefined) throw new Failure('not_found', { message: 'There is no such escalation' })
  return opened(row)
}

export interface EscalationFilters {
  status: EscalationState | undefined
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
  const inState = stateCondition(status, now)
  const rows = await ledger.read<Record<string, unknown> & Names>(
    `select ${columns} from escalations e where (${visible.sql}) and (${inState.sql})
      and queued_at >= ? and (? is null or id < ?) order by id desc limit ?`,
    [...visible.args, ...inState.args, since ?? 0, before, before, limit],
  )
  return rows.map(opened)
}

function stateCondition(status: EscalationState | undefined, now: number): Statement {
  if (status === undefined) return { sql: 'true', args: [] }
  if (status === 'resolved') return { sql: "state = 'resolved'", args: [] }
  if (status === 'expired') {
    return { sql: "state = 'expired' or (state in ('queued', 'claimed') and expires_at <= ?)", args: [now] }
  }
  return { sql: 'state = ? and expires_at > ?', args: [status, now] }
}

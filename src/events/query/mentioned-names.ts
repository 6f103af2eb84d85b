/**
 * The names of the records that events mention: tokens, teams, people and policies. Who sees an event learns what its
 * token, its team and its policies are called, also where the records themselves are not theirs to read. The name of a
 * person is told only to those who may read that person.
 *
 * SQL text: conditions on several tables that depend on the caller.
 */
import { z } from 'zod'
import type { Permission } from '../../identity/permissions.ts'
import type { Database } from '../../store/open.ts'
import type { Event } from '../event.ts'
import { type Caller, type NamedKind, namedKinds, seenRecords } from './named-records.ts'

export const mentionedNameSchema = z.object({
  kind: z.enum(namedKinds),
  id: z.string(),
  name: z.string(),
  readable: z.boolean().describe('Whether the caller may read the record itself'),
})
export type MentionedName = z.infer<typeof mentionedNameSchema>

const reads: Readonly<Record<NamedKind, Permission>> = {
  token: 'tokens:read',
  team: 'members:read',
  user: 'members:read',
  policy: 'policies:read',
}

export async function namesIn(ledger: Database, caller: Caller, events: readonly Event[]): Promise<MentionedName[]> {
  const mentioned = events.flatMap(mentionedIn)
  // A limit may be another's: of the team that owns the gateway, or of the token from which this one was cloned.
  const own = new Set(mentioned.filter(({ ofLimit }) => !ofLimit).map(({ id }) => id))
  const found = await Promise.all(
    namedKinds.map(async (kind) => {
      const ids = [...new Set(mentioned.filter((each) => each.kind === kind).map(({ id }) => id))]
      if (ids.length === 0) return []
      const { table, sql, args } = seenRecords(caller, kind)
      const rows = await ledger.read<{ id: string; name: string; seen: number }>(
        `select id, name, (${sql}) as seen from ${table} where id in (select value from json_each(?))`,
        [...args, JSON.stringify(ids)],
      )
      const told = rows.filter(({ id, seen }) => seen === 1 || (kind !== 'user' && own.has(id)))
      const mayRead = caller.principal.permissions.has(reads[kind])
      return told.map(({ id, name, seen }) => ({ kind, id, name, readable: mayRead && seen === 1 }))
    }),
  )
  return found.flat()
}

const detailsSchema = z.object({
  policy_results: z.array(z.object({ policy_id: z.string() })).catch([]),
  limit: z
    .object({
      kind: z.string(),
      id: z.string(),
      scope: z.object({ kind: z.string(), id: z.string().nullable() }).nullish(),
    })
    .nullable()
    .catch(null),
})

/** The limits that are of one token, by the kind that events name. */
const limitsOfTokens = new Set(['max_budget', 'max_requests', 'rate_limit'])

function mentionedIn({ event_attribution: who, details }: Event): { kind: NamedKind; id: string; ofLimit: boolean }[] {
  const { policy_results: results, limit } = detailsSchema.parse(details ?? {})
  const scopeKind = namedKinds.find((kind) => kind === limit?.scope?.kind)
  const mentioned: [kind: NamedKind, id: string | null | undefined][] = [
    ['token', who.token_id],
    ['team', who.team_id],
    ['user', who.user_id],
    ...results.map(({ policy_id: id }) => ['policy', id] as const satisfies [NamedKind, string]),
  ]
  const ofLimit: typeof mentioned = [
    ['token', limit !== null && limitsOfTokens.has(limit.kind) ? limit.id : null],
    ...(scopeKind === undefined ? [] : [[scopeKind, limit?.scope?.id] as [NamedKind, string | null | undefined]]),
  ]
  return [
    ...mentioned.flatMap(([kind, id]) => (id == null ? [] : [{ kind, id, ofLimit: false }])),
    ...ofLimit.flatMap(([kind, id]) => (id == null ? [] : [{ kind, id, ofLimit: true }])),
  ]
}

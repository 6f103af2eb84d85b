/**
 * Tokens, teams, people and policies by their names, as a caller of the events may know them. A record that the caller
 * does not see is answered as one that does not exist. An id is taken as it is: it tells nothing, because the events
 * are filtered by what the caller sees. Of a name that several records have had, all are meant.
 *
 * SQL text: conditions on several tables that depend on the caller.
 */
import { Failure } from '../../failure.ts'
import type { Principal } from '../../identity/principal.ts'
import { isUuid } from '../../lib/ids.ts'
import type { Database } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'
import type { Visibility } from '../visibility.ts'

export interface Caller {
  principal: Principal
  visibility: Visibility
}

export const namedKinds = ['token', 'team', 'user', 'policy'] as const
export type NamedKind = (typeof namedKinds)[number]

/** The ids of the records of a name. Throws `invalid_parameter` where the caller sees none. */
export async function idsOfName(ledger: Database, caller: Caller, kind: NamedKind, name: string): Promise<string[]> {
  if (isUuid(name)) return [name.toLowerCase()]
  const { table, column, what, seen } = kinds[kind]
  const { sql, args } = seen(caller)
  const rows = await ledger.read<{ id: string }>(`select id from ${table} where ${column} = ? and (${sql})`, [
    name,
    ...args,
  ])
  if (rows.length > 0) return rows.map(({ id }) => id)
  throw new Failure('invalid_parameter', { param: kind, message: `There is no ${what}, or you may not see it` })
}

/** The table of a kind, and which of its rows the caller sees. */
export function seenRecords(caller: Caller, kind: NamedKind): Statement & { table: string } {
  const { table, seen } = kinds[kind]
  return { table, ...seen(caller) }
}

const everyRecord: Statement = { sql: 'true', args: [] }
const among = 'in (select value from json_each(?))'

/** Of the records of its kind, a caller bound to a team or a person sees some only (`tokens/`, `members/`). */
const isBound = ({ kind, teamId, userId }: Principal): boolean =>
  teamId !== null || (kind !== 'session' && userId !== null)

const teamsOf = ({ visibility: { teams } }: Caller): string => JSON.stringify(teams === 'every' ? [] : teams)

const readsTokensOfOthers = ({ roles }: Principal): boolean => roles.some((role) => role !== 'member')

const kinds: Readonly<
  Record<NamedKind, { table: string; column: string; what: string; seen(caller: Caller): Statement }>
> = {
  token: {
    table: 'tokens',
    column: 'name',
    what: 'token of this name',
    seen(caller) {
      const { principal } = caller
      const own = { sql: 'user_id = ? or id = ?', args: [principal.userId, principal.tokenId] }
      if (!principal.permissions.has('tokens:read') || !readsTokensOfOthers(principal)) return own
      if (!isBound(principal)) return everyRecord
      return { sql: `team_id ${among} or ${own.sql}`, args: [teamsOf(caller), ...own.args] }
    },
  },
  team: {
    table: 'teams',
    column: 'name',
    what: 'team of this name',
    seen(caller) {
      const { principal } = caller
      if (principal.permissions.has('members:read') && !isBound(principal)) return everyRecord
      return { sql: `id ${among}`, args: [teamsOf(caller)] }
    },
  },
  user: {
    table: 'users',
    column: 'email',
    what: 'person of this e-mail address',
    seen(caller) {
      const { principal } = caller
      const own = { sql: 'id = ?', args: [principal.userId] }
      if (!principal.permissions.has('members:read')) return own
      if (!isBound(principal)) return everyRecord
      const inTeams = `id in (select user_id from memberships where team_id ${among})`
      return { sql: `${own.sql} or ${inTeams}`, args: [...own.args, teamsOf(caller)] }
    },
  },
  policy: {
    table: 'policies',
    column: 'name',
    what: 'policy of this name',
    seen: ({ principal }) => (principal.permissions.has('policies:read') ? everyRecord : { sql: 'false', args: [] }),
  },
}

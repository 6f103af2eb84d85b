/** The rows of the state that hold limits: how they are named, read, and found to have changed. */
import { createHash } from 'node:crypto'
import type { Reader } from './open.ts'

export type LimitRowKind = 'account' | 'budget' | 'group' | 'policy' | 'server'

/** The kind of a row and its id. */
export type LimitKey = `${LimitRowKind}/${string}`

/** What a kind does not have is null. */
export interface LimitRow {
  max_requests: number | null
  /** Nano-dollars. */
  max_budget: number | null
  requests_per_minute: number | null
  tokens_per_minute: number | null
  window: 'day' | 'week' | 'month' | 'total' | null
  /** Whether each token has the rates of a policy by itself. */
  scope: 'token' | 'shared' | null
  /** The gateway that the account's token is bound to. */
  gateway_id: string | null
  /** The limits of the tools of an MCP server, as JSON. */
  tool_limits: string | null
  /** The most values of the dimension of a limit for each value; null for any other limit. */
  max_values: number | null
}

/** The limit a minute of all requests to an MCP server. */
export const serverRateAccount = (serverId: string): string => `server/${serverId}/requests`

/** The limit a minute of one of its tools. Names of tools may be long and hold anything, so a digest stands for them. */
export const toolRateAccount = (serverId: string, tool: string): string =>
  `server/${serverId}/${toolDigest(tool)}/requests`

export const toolDigest = (tool: string): string => createHash('sha256').update(tool).digest('hex').slice(0, 32)

export interface LimitRows {
  /** A row that the state does not have is null. A row that cannot be known at the moment is not among the answers. */
  read(keys: readonly LimitKey[]): Promise<ReadonlyMap<LimitKey, LimitRow | null>>
}

/** `l`: the row of a limit. One whose dimension is gone has no value of its own. */
const maxValues =
  'iif(l.per is null, null, coalesce((select d.max_values from attribution_dimensions d where d.name = l.per and d.deleted = 0), 0))'

const select = `select 'account/' || asked.value as key, a.max_requests, a.max_budget,
    a.rate_limit_rpm as requests_per_minute, a.rate_limit_tpm as tokens_per_minute,
    null as window, null as scope, t.gateway_id, null as tool_limits, null as max_values
  from json_each(?1) asked left join accounts a on a.id = asked.value and a.deleted = 0
    left join tokens t on t.id = asked.value
  union all
  select 'budget/' || id, null, max_budget, null, null, window, null, null, null, ${maxValues}
  from budgets l where deleted = 0 and id in (select value from json_each(?2))
  union all
  select 'group/' || id, null, null, requests_per_minute, tokens_per_minute, null, null, null, null, ${maxValues}
  from consumer_groups l where deleted = 0 and id in (select value from json_each(?3))
  union all
  select 'policy/' || id, null, null, requests_per_minute, tokens_per_minute, null, scope, null, null, ${maxValues}
  from access_policies l where deleted = 0 and id in (select value from json_each(?4))
  union all
  select 'server/' || id, null, null, requests_per_minute, null, null, null, null, tool_limits, null
  from mcp_servers where deleted = 0 and id in (select value from json_each(?5))`

const kinds: readonly LimitRowKind[] = ['account', 'budget', 'group', 'policy', 'server']

/** Reads rows from the state; each key that was asked for is in the answer. */
export async function readLimitRows(state: Reader, keys: readonly LimitKey[]): Promise<Map<LimitKey, LimitRow | null>> {
  const answer = new Map<LimitKey, LimitRow | null>(keys.map((key) => [key, null]))
  if (answer.size === 0) return answer
  const idsOf = (kind: LimitRowKind) =>
    [...answer.keys()].filter((key) => key.startsWith(`${kind}/`)).map((key) => key.slice(kind.length + 1))
  const rows = await state.read<LimitRow & { key: LimitKey }>(
    select,
    kinds.map((kind) => JSON.stringify(idsOf(kind))),
  )
  for (const { key, ...row } of rows) answer.set(key, row)
  return answer
}

const newest = (kind: LimitRowKind, table: string) =>
  `select * from (select '${kind}/' || id as key, version from ${table} where version > ?1 order by version desc limit ?2)`

/** Budgets for each value of a dimension, with the version of the dimension: it says how many values they keep apart. */
export const ofDimensions =
  'select b.id, d.version from budgets b join attribution_dimensions d on d.name = b.per where b.deleted = 0'

const changed = `select h.version as head, c.key from state_head h left join (
    ${newest('account', 'accounts')} union all ${newest('budget', `(${ofDimensions})`)} union all ${newest('budget', 'budgets')}
    union all ${newest('group', 'consumer_groups')} union all ${newest('policy', 'access_policies')}
    union all ${newest('server', 'mcp_servers')}
  ) c on true where h.id = 1 order by c.version desc`

const ofNewest = 'where version = (select version from state_head where id = 1)'

/**
 * The rows of limits and of tokens that the state's newest version has changed, as a JSON array of `<kind>/<id>`: an SQL
 * expression for the transaction that makes the version.
 */
export const changedByNewest = `(select json_group_array(key) from (
    select 'account/' || id as key from accounts ${ofNewest} union all select 'budget/' || id from budgets ${ofNewest}
    union all select 'budget/' || id from (${ofDimensions}) ${ofNewest}
    union all select 'group/' || id from consumer_groups ${ofNewest}
    union all select 'policy/' || id from access_policies ${ofNewest}
    union all select 'server/' || id from mcp_servers ${ofNewest}
    union all select 'token/' || id from tokens ${ofNewest}))`

/** Of such a text, the keys of limits and the ids of tokens. */
export function splitChanged(changed: readonly string[]): { limits: LimitKey[]; tokens: Set<string> } {
  const tokens = new Set<string>()
  const limits: LimitKey[] = []
  for (const key of changed) {
    const at = key.indexOf('/')
    const [kind, id] = [key.slice(0, at), key.slice(at + 1)]
    const limited = kinds.find((each) => each === kind)
    if (limited !== undefined) limits.push(`${limited}/${id}`)
    else if (kind === 'token') tokens.add(id)
  }
  return { limits, tokens }
}

export interface ChangedRows {
  /** The version of the state up to which these are the changes. */
  head: number
  /** The newest first; one more row than `most` shows that there may be others. */
  keys: LimitKey[]
}

/** Which rows have changed after a version; null where the state has no head. */
export async function changedLimitRows(state: Reader, since: number, most: number): Promise<ChangedRows | null> {
  const rows = await state.read<{ head: number; key: LimitKey | null }>(changed, [since, most + 1])
  const [first] = rows
  if (first === undefined) return null
  return { head: first.head, keys: rows.flatMap(({ key }) => (key === null ? [] : [key])) }
}

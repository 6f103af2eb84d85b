/** How many slots a limit a minute has, from the state. */
import { Failure } from '../../failure.ts'
import type { LimitKey, LimitRow, LimitRows } from '../../store/limit-rows.ts'

interface SlotLimit {
  key: LimitKey
  unit: 'requests_per_minute' | 'tokens_per_minute'
  /** For an access policy: whether the account is of a single token. */
  scope: LimitRow['scope']
}

const form = /^(group|access|token)\/([^/]+)\/(?:([^/]+)\/)?(requests|tokens)$/
const rowKinds: Readonly<Record<string, 'group' | 'policy' | 'account'>> = {
  group: 'group',
  access: 'policy',
  token: 'account',
}

/**
 * Parses an account name: `group/<id>/requests`, or `access/<id>/<token>/requests` for a policy with rates for each
 * token. Null if it is invalid.
 */
function readSlotAccount(account: string): SlotLimit | null {
  const [, kind = '', id = '', token, unit] = form.exec(account) ?? []
  const rowKind = rowKinds[kind]
  if (rowKind === undefined || (token !== undefined && rowKind !== 'policy')) return null
  const scope = rowKind === 'policy' ? (token === undefined ? 'shared' : 'token') : null
  return { key: `${rowKind}/${id}`, unit: unit === 'tokens' ? 'tokens_per_minute' : 'requests_per_minute', scope }
}

/** The slots of a limit; 0 if there is no such limit. Throws `dependency_unavailable` if it cannot be read. */
export async function slotsOf(rows: LimitRows, account: string): Promise<number> {
  const named = readSlotAccount(account)
  if (named === null) return 0
  const row = (await rows.read([named.key])).get(named.key)
  if (row === undefined) throw new Failure('dependency_unavailable', { retryAfter: 1 })
  return row === null || row.scope !== named.scope ? 0 : (row[named.unit] ?? 0)
}

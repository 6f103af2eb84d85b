/** How many slots limits a minute have, as the state has them now. */
import { Failure } from '../../failure.ts'
import type { LimitKey, LimitRow, LimitRows } from '../../store/limit-rows.ts'

interface SlotLimit {
  key: LimitKey
  unit: 'requests_per_minute' | 'tokens_per_minute'
  /** Of a policy: whether the account is one token's own. */
  scope: LimitRow['scope']
}

const form = /^(group|access|token)\/([^/]+)\/(?:([^/]+)\/)?(requests|tokens)$/
const rowKinds: Readonly<Record<string, 'group' | 'policy' | 'account'>> = {
  group: 'group',
  access: 'policy',
  token: 'account',
}

/**
 * Reads the name of an account: `group/<id>/requests`, or `access/<id>/<token>/requests` of a policy whose rates each token
 * has by itself. Null where it is no such name.
 */
function readSlotAccount(account: string): SlotLimit | null {
  const [, kind = '', id = '', token, unit] = form.exec(account) ?? []
  const rowKind = rowKinds[kind]
  if (rowKind === undefined || (token !== undefined && rowKind !== 'policy')) return null
  const scope = rowKind === 'policy' ? (token === undefined ? 'shared' : 'token') : null
  return { key: `${rowKind}/${id}`, unit: unit === 'tokens' ? 'tokens_per_minute' : 'requests_per_minute', scope }
}

/** The slots of a limit; 0 where there is no such limit. Throws `dependency_unavailable` where that cannot be known. */
export async function slotsOf(rows: LimitRows, account: string): Promise<number> {
  const named = readSlotAccount(account)
  if (named === null) return 0
  const row = (await rows.read([named.key])).get(named.key)
  if (row === undefined) throw new Failure('dependency_unavailable', { retryAfter: 1 })
  return row === null || row.scope !== named.scope ? 0 : (row[named.unit] ?? 0)
}

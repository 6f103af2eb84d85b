/**
 * What an account's name says: `token/<id>/requests`, `token/<id>/money`, `budget/<id>`, `grant/<id>`, or
 * `budget/<id>/<digest>` for one value of a dimension (usage/README.md, Attribution).
 */

export type AccountKind = 'requests' | 'money' | 'budget' | 'grant'

export interface NamedAccount {
  kind: AccountKind
  id: string
  /** The digest of a value; null for a limit that is not for each value. */
  value: string | null
}

const form =
  /^(?:token\/([^/@]{1,64})\/(requests|money)|(budget|grant)\/([^/@]{1,64})(?:\/([0-9a-f]{32}))?)(?:@\d{4}-\d{2}-\d{2})?$/

/** Null where it is no name of an account. */
export function readAccountName(name: string): NamedAccount | null {
  const [, token, limit, kind, other, value = null] = form.exec(name) ?? []
  if (token !== undefined) return { kind: limit === 'money' ? 'money' : 'requests', id: token, value: null }
  if (other === undefined || (kind === 'grant' && value !== null)) return null
  return { kind: kind === 'grant' ? 'grant' : 'budget', id: other, value }
}

/** Whether an account counts nano-dollars; the others count requests. Booked names have a window's start after `@`. */
export const countsMoney = (account: string): boolean => account.endsWith('/money') || account.startsWith('budget/')

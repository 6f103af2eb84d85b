/** What an account's name says: `token/<id>/requests`, `token/<id>/money`, `budget/<id>`, `grant/<id>`. */

export type AccountKind = 'requests' | 'money' | 'budget' | 'grant'

export interface NamedAccount {
  kind: AccountKind
  id: string
}

const form = /^(?:token\/([^/@]{1,64})\/(requests|money)|(budget|grant)\/([^/@]{1,64}))(?:@\d{4}-\d{2}-\d{2})?$/

/** Null where it is no name of an account. */
export function readAccountName(name: string): NamedAccount | null {
  const [, token, limit, kind, other] = form.exec(name) ?? []
  if (token !== undefined) return { kind: limit === 'money' ? 'money' : 'requests', id: token }
  return other === undefined ? null : { kind: kind === 'grant' ? 'grant' : 'budget', id: other }
}

/** Whether an account counts nano-dollars; the others count requests. Booked names have a window's start after `@`. */
export const countsMoney = (account: string): boolean => account.endsWith('/money') || account.startsWith('budget/')

/** The ledger's table `secrets`: values by name, sealed under the master key. */
import { and, eq } from 'drizzle-orm'
import type { Database } from '../open.ts'
import { insert, query, remove, statement, update } from '../query.ts'
import { secrets } from '../schema/ledger/changes.ts'
import type { Statement } from '../statement.ts'
import type { MasterKey } from './master-key.ts'

/** The statement that keeps a secret in the ledger; one of the same name stays as it is. */
export const keepSecret = (masterKey: MasterKey, name: string, secret: string, now: number): Statement =>
  statement(
    insert(secrets)
      .values({ name, sealed: masterKey.seal('secret', name, secret), createdAt: now })
      .onConflictDoNothing(),
  )

/** The statement that replaces a secret if it has not changed meanwhile. */
export const replaceSecret = (
  masterKey: MasterKey,
  name: string,
  { from, to }: { from: SealedSecret; to: string },
): Statement =>
  statement(
    update(secrets)
      .set({ sealed: masterKey.seal('secret', name, to) })
      .where(and(eq(secrets.name, name), eq(secrets.sealed, from.sealed))),
  )

export const forgetSecret = (name: string): Statement => statement(remove(secrets).where(eq(secrets.name, name)))

export interface SealedSecret {
  secret: string
  /** As it stands in the ledger. */
  sealed: string
}

/** Opens a secret of the ledger; null if there is none of that name. */
export async function readSecret(ledger: Database, masterKey: MasterKey, name: string): Promise<SealedSecret | null> {
  const row = await query(ledger).select().from(secrets).where(eq(secrets.name, name)).get()
  return row === undefined ? null : { secret: masterKey.open('secret', name, row.sealed), sealed: row.sealed }
}

/** Opens a secret of the ledger; null if there is none of that name. */
export async function openSecret(ledger: Database, masterKey: MasterKey, name: string): Promise<string | null> {
  return (await readSecret(ledger, masterKey, name))?.secret ?? null
}

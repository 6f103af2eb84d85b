/** The queries of applications. */
import { and, eq, gt, isNotNull, isNull, sql } from 'drizzle-orm'
import type { Database } from '../../store/open.ts'
import { guard, hasRow, insert, query, statement, update } from '../../store/query.ts'
import { oauthClients } from '../../store/schema/ledger/oauth.ts'
import type { Statement } from '../../store/statement.ts'
import type { Client } from './client.ts'
import type { ClientStatus } from './client-resource.ts'

/** The client of this id, or null. */
export const findClient = async (ledger: Database, id: string): Promise<Client | null> =>
  (await query(ledger).select().from(oauthClients).where(eq(oauthClients.id, id)).get()) ?? null

/** A page of clients in the order they were registered, after the id `start`. */
export function readClients(
  ledger: Database,
  { status, start, count }: { status: ClientStatus | undefined; start: string; count: number },
): Promise<Client[]> {
  const { id, deactivatedAt } = oauthClients
  const ofStatus = { active: isNull(deactivatedAt), deactivated: isNotNull(deactivatedAt) }
  return query(ledger)
    .select()
    .from(oauthClients)
    .where(and(gt(id, start), status === undefined ? undefined : ofStatus[status]))
    .orderBy(id)
    .limit(count)
}

export const addClient = (client: typeof oauthClients.$inferInsert): Statement =>
  statement(insert(oauthClients).values(client))

/** Keeps a client that brings its own metadata, as that is now; whether it is deactivated stays. */
export const keepDocumentClient = (client: Client): Statement => {
  const { name, redirectUris, scope } = client
  const set = { name, redirectUris, scope, version: sql`${oauthClients.version} + 1` }
  return statement(insert(oauthClients).values(client).onConflictDoUpdate({ target: oauthClients.id, set }))
}

/** Changes a client that is still as it was read. */
export const changeClient = (
  { id, version }: Client,
  changes: Partial<Pick<Client, 'name' | 'redirectUris' | 'grantTypes' | 'scope' | 'deactivatedAt'>>,
): Statement[] => [
  guard(hasRow(oauthClients, and(eq(oauthClients.id, id), eq(oauthClients.version, version)))),
  statement(
    update(oauthClients)
      .set({ ...changes, version: sql`${oauthClients.version} + 1` })
      .where(eq(oauthClients.id, id)),
  ),
]

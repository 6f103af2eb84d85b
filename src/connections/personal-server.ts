/** The MCP servers at which each person has an account of their own, as the control plane reads them. */
import { and, eq } from 'drizzle-orm'
import type { ServerCredentials } from '../mcp/catalog/server-credentials.ts'
import { openPersonalSecret, openServerCredentials, openServerKey } from '../mcp/catalog/server-credentials.ts'
import { query } from '../store/query.ts'
import { mcpServers } from '../store/schema/state/catalog.ts'
import type { ConnectionDependencies } from './dependencies.ts'

export interface PersonalServer {
  id: string
  name: string
  url: string
  personal: NonNullable<ServerCredentials['personal']>
}

type Stores = Pick<ConnectionDependencies, 'state' | 'ledger' | 'masterKey'>

/** The enabled ones, in the order of their names. */
export async function personalServers(stores: Stores): Promise<PersonalServer[]> {
  const enabled = and(eq(mcpServers.deleted, 0), eq(mcpServers.enabled, 1))
  const rows = await query(stores.state).select().from(mcpServers).where(enabled).orderBy(mcpServers.name)
  const read = await Promise.all(rows.map((row) => personalServerOf(stores, row)))
  return read.filter((server) => server !== null)
}

/** The enabled one of this id; null where there is none, or it is used by other credentials. */
export async function findPersonalServer(stores: Stores, id: string): Promise<PersonalServer | null> {
  const found = and(eq(mcpServers.id, id), eq(mcpServers.deleted, 0), eq(mcpServers.enabled, 1))
  const row = await query(stores.state).select().from(mcpServers).where(found).get()
  return row === undefined ? null : await personalServerOf(stores, row)
}

async function personalServerOf(
  stores: Stores,
  { id, name, url, sealedCredentials: sealed }: typeof mcpServers.$inferSelect,
): Promise<PersonalServer | null> {
  if (url === null || sealed === null) return null
  const dataKey = await openServerKey(stores, id)
  const personal = dataKey === null ? undefined : openServerCredentials(dataKey, id, sealed).personal
  return personal === undefined ? null : { id, name, url, personal }
}

/** The client that an operator registered for this installation; null where none was. */
export async function configuredClient(
  stores: Stores,
  { id, personal }: PersonalServer,
): Promise<{ clientId: string; clientSecret: string | null } | null> {
  if (personal.client_id === undefined) return null
  return { clientId: personal.client_id, clientSecret: await openPersonalSecret(stores, id) }
}

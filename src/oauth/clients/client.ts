import type { Database } from '../../store/open.ts'
import { writeScope } from '../scope.ts'
import { type ClientRecord, grantTypes } from './client-resource.ts'

export interface Client {
  id: string
  name: string
  redirectUris: readonly string[]
  scope: readonly string[]
  createdAt: number
  createdBy: string
  deactivatedAt: number | null
  version: number
}

export interface ClientRow {
  id: string
  name: string
  redirect_uris: string
  scope: string
  created_at: number
  created_by: string
  deactivated_at: number | null
  version: number
}

/** Opens a row, which was written from checked values. */
export const openClient = (row: ClientRow): Client => ({
  id: row.id,
  name: row.name,
  redirectUris: JSON.parse(row.redirect_uris) as string[],
  scope: JSON.parse(row.scope) as string[],
  createdAt: row.created_at,
  createdBy: row.created_by,
  deactivatedAt: row.deactivated_at,
  version: row.version,
})

export const clientRecord = (client: Client): ClientRecord => ({
  client_id: client.id,
  client_name: client.name,
  redirect_uris: [...client.redirectUris],
  scope: writeScope(client.scope),
  grant_types: [...grantTypes],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
  client_id_issued_at: Math.floor(client.createdAt / 1000),
  status: client.deactivatedAt === null ? 'active' : 'deactivated',
  created_by: client.createdBy,
  version: client.version,
})

/** The client of this id, or null. */
export async function findClient(ledger: Database, id: string): Promise<Client | null> {
  const [row] = await ledger.read<ClientRow>('select * from oauth_clients where id = ?', [id])
  return row === undefined ? null : openClient(row)
}

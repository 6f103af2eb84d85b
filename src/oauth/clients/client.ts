/** Applications: public clients (oauth/README.md). */
import type { oauthClients } from '../../store/schema/ledger/oauth.ts'
import { writeScope } from '../scope.ts'
import { type ClientRecord, grantTypes } from './client-resource.ts'

export type Client = typeof oauthClients.$inferSelect

export const clientRecord = (client: Client): ClientRecord => ({
  client_id: client.id,
  client_name: client.name,
  redirect_uris: [...client.redirectUris],
  scope: writeScope(client.scope),
  grant_types: grantTypes.filter((type) => client.grantTypes.includes(type)),
  response_types: client.grantTypes.includes('authorization_code') ? ['code'] : [],
  token_endpoint_auth_method: 'none',
  client_id_issued_at: Math.floor(client.createdAt / 1000),
  status: client.deactivatedAt === null ? 'active' : 'deactivated',
  created_by: client.createdBy,
  version: client.version,
})

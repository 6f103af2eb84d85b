import { z } from 'zod'
import { clientResource } from '../../../../src/oauth/clients/client-resource.ts'
import { type Call, kindOf, type Situation } from '../kind.ts'

const statuses = z.enum(['active', 'deactivated']).describe('Whether it is in service').optional()

const switched = (id: string, status: unknown): Call => ({
  method: 'POST',
  path: `${clientResource.path}/${encodeURIComponent(id)}/${status === 'deactivated' ? 'deactivate' : 'activate'}`,
})

function more({ wanted: { status = 'active' }, present, id }: Situation): Call[] {
  return status === (present?.status ?? 'active') ? [] : [switched(id, status)]
}

/** By `client_id`. An application is taken out of service and never deleted. */
export const oauthClients = kindOf(clientResource, {
  member: 'oauth_clients',
  key: 'client_id',
  id: 'client_id',
  omit: ['response_types', 'token_endpoint_auth_method'],
  further: { status: statuses },
  absent: { redirect_uris: [], grant_types: ['authorization_code', 'refresh_token'], status: 'active' },
  more,
  remove: ({ status }, id) => (status === 'deactivated' ? [] : [switched(id, 'deactivated')]),
})

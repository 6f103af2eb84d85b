/** Applications: public clients, registered beforehand (oauth/README.md; names of RFC 7591 section 2). */
import { z } from 'zod'
import { nameText } from '../../identity/free-text.ts'
import type { Database } from '../../store/open.ts'
import { redirectUriFault } from '../authorize/redirect-uri.ts'
import { isScope, readScope, scopes, writeScope } from '../scope.ts'

export const clientStatuses = ['active', 'deactivated'] as const
export type ClientStatus = (typeof clientStatuses)[number]

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

/** All supported values. */
export const grantTypes = ['authorization_code', 'refresh_token'] as const

export const clientSchema = z.object({
  client_id: z.uuid(),
  client_name: z.string(),
  redirect_uris: z.array(z.string()),
  scope: z.string().describe('The scopes it may ask for, separated by spaces'),
  grant_types: z.array(z.enum(grantTypes)),
  response_types: z.array(z.literal('code')),
  token_endpoint_auth_method: z.literal('none'),
  client_id_issued_at: z.number().int().describe('Seconds since the epoch'),
  status: z.enum(clientStatuses),
  created_by: z.string(),
  version: z.number().int(),
})
export type ClientRecord = z.infer<typeof clientSchema>

const redirectUri = z.string().superRefine((text, context) => {
  const message = redirectUriFault(text)
  if (message !== null) context.addIssue({ code: 'custom', message })
})

const scopeText = z
  .string()
  .max(1000)
  .refine((text) => readScope(text)?.every(isScope) ?? false, `Name one or more of ${scopes.join(', ')}`)
  .transform((text) => writeScope(readScope(text) ?? []))

/** Fixed properties of a client may be given, but only with their fixed values. */
const fixed = {
  grant_types: z
    .array(z.enum(grantTypes))
    .refine((types) => new Set(types).size === grantTypes.length, `Every client has ${grantTypes.join(' and ')}`)
    .optional(),
  response_types: z.tuple([z.literal('code')]).optional(),
  token_endpoint_auth_method: z.literal('none').optional(),
}

const registered = {
  client_name: nameText(100),
  redirect_uris: z
    .array(redirectUri)
    .min(1)
    .max(20)
    .transform((uris) => [...new Set(uris)]),
  scope: scopeText,
}

export const newClientBody = z.strictObject({ ...registered, ...fixed })
export const clientChanges = z.strictObject({ ...z.object(registered).partial().shape, ...fixed })

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

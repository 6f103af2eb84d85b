/**
 * Stores the secrets of an MCP server like those of providers (`src/providers/credentials.ts`): sealed in the state
 * under a data key, which is in the ledger under the master key and reaches gateways by bootstrap.
 */
import { z } from 'zod'
import { seal, unseal } from '../../lib/seal.ts'
import type { KeyStore } from '../../providers/credentials.ts'
import { forgetSecret, keepSecret, openSecret } from '../../store/keys/secrets.ts'
import type { Statement } from '../../store/statement.ts'

export const serverCredentialsSchema = z.object({
  headers: z.record(z.string(), z.string()),
  oauth: z
    .object({
      token_url: z.string(),
      client_id: z.string(),
      client_secret: z.string(),
      scope: z.string().optional(),
      resource: z.string().optional(),
    })
    .nullable(),
  environment: z.record(z.string(), z.string()),
  /** Each person has an account of their own. The secret of the client is in the ledger only. */
  personal: z
    .object({ issuer: z.string().optional(), client_id: z.string().optional(), scope: z.string().optional() })
    .optional(),
})
export type ServerCredentials = z.infer<typeof serverCredentialsSchema>

export const noServerCredentials: ServerCredentials = { headers: {}, oauth: null, environment: {} }

/** The name of the ledger secret that holds a server's data key. */
const keyName = (serverId: string): string => `mcp-server-key:${serverId}`

export const sealServerCredentials = (dataKey: Uint8Array, id: string, credentials: ServerCredentials): string =>
  seal(dataKey, JSON.stringify(credentials), id)

/** Opens what `sealServerCredentials` made. Throws with another key. */
export const openServerCredentials = (dataKey: Uint8Array, id: string, sealed: string): ServerCredentials =>
  serverCredentialsSchema.parse(JSON.parse(unseal(dataKey, sealed, id)))

/** The data key of a server; null when it has none. */
export async function openServerKey({ ledger, masterKey }: KeyStore, id: string): Promise<Uint8Array | null> {
  const text = await openSecret(ledger, masterKey, keyName(id))
  return text === null ? null : new Uint8Array(Buffer.from(text, 'base64'))
}

/** Stores a data key in the ledger unless there is one. */
export const keepServerKey = ({ masterKey }: KeyStore, id: string, dataKey: Uint8Array, now: number): Statement =>
  keepSecret(masterKey, keyName(id), Buffer.from(dataKey).toString('base64'), now)

export const forgetServerKey = (id: string): Statement => forgetSecret(keyName(id))

/** The name of the ledger secret of the client that people's own authorization goes through; gateways never get it. */
const clientSecretName = (serverId: string): string => `mcp-personal-client:${serverId}`

export const openPersonalSecret = ({ ledger, masterKey }: KeyStore, id: string): Promise<string | null> =>
  openSecret(ledger, masterKey, clientSecretName(id))

/** Replaces that secret; null takes it away. */
export const setPersonalSecret = (
  { masterKey }: Pick<KeyStore, 'masterKey'>,
  id: string,
  secret: string | null,
  now: number,
): Statement[] => [
  forgetSecret(clientSecretName(id)),
  ...(secret === null ? [] : [keepSecret(masterKey, clientSecretName(id), secret, now)]),
]

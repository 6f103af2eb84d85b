/**
 * A provider's credentials at rest (providers/README.md, fleet/README.md, Trust): sealed in the state under a data key
 * of its own, which lies in the ledger under the master key and reaches the gateways that may use the provider by
 * bootstrap. A new credential is sealed under the same key, so that a rotation reaches gateways with the state and with
 * no gap.
 */
import { seal, unseal } from '../lib/seal.ts'
import type { MasterKey } from '../store/keys/master-key.ts'
import { forgetSecret, keepSecret, openSecret } from '../store/keys/secrets.ts'
import type { Database } from '../store/open.ts'
import type { Statement } from '../store/statement.ts'

export interface Credentials {
  apiKey: string | null
  /** Used beside the first one. */
  moreApiKeys: readonly string[]
  /** Further headers the operator set; their values may be secret. */
  headers: Readonly<Record<string, string>>
}

export const noCredentials: Credentials = { apiKey: null, moreApiKeys: [], headers: {} }

/** What is needed of the control plane to keep and open data keys. */
export interface KeyStore {
  ledger: Database
  masterKey: MasterKey
}

/** The name of the ledger's secret that holds a provider's data key. */
export const providerKeyName = (providerId: string): string => `provider-key:${providerId}`

/** Null if there is nothing to seal. */
export function sealCredentials(
  dataKey: Uint8Array,
  id: string,
  { apiKey, moreApiKeys, headers }: Credentials,
): string | null {
  if (apiKey === null && Object.keys(headers).length === 0) return null
  const more = moreApiKeys.length > 0 && { more_api_keys: moreApiKeys }
  return seal(dataKey, JSON.stringify({ api_key: apiKey, headers, ...more }), id)
}

/** Opens what `sealCredentials` made. Throws for another key. */
export function openCredentials(dataKey: Uint8Array, id: string, sealed: string): Credentials {
  const opened: { api_key: string | null; more_api_keys?: string[]; headers: Record<string, string> } = JSON.parse(
    unseal(dataKey, sealed, id),
  )
  return { apiKey: opened.api_key, moreApiKeys: opened.more_api_keys ?? [], headers: opened.headers }
}

/** The data key of a provider; null if it has none yet. */
export async function openDataKey({ ledger, masterKey }: KeyStore, id: string): Promise<Uint8Array | null> {
  const text = await openSecret(ledger, masterKey, providerKeyName(id))
  return text === null ? null : new Uint8Array(Buffer.from(text, 'base64'))
}

/** Keeps a data key in the ledger; one that is there stays. */
export const keepDataKey = ({ masterKey }: KeyStore, id: string, dataKey: Uint8Array, now: number): Statement =>
  keepSecret(masterKey, providerKeyName(id), Buffer.from(dataKey).toString('base64'), now)

export const forgetDataKey = (id: string): Statement => forgetSecret(providerKeyName(id))

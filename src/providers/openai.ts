/**
 * OpenAI, and everything that speaks its language by another base URL. The base follows the convention of the official
 * clients' `OPENAI_BASE_URL`, which includes `/v1`; a base that is only an origin gets it, a trailing slash is ignored.
 */
import type { Family } from '../dialects/dialect.ts'
import type { Provider, ProviderKind } from './provider.ts'

const defaultBase = 'https://api.openai.com/v1'
const paths: Partial<Record<Family, string>> = {
  chat: '/chat/completions',
  responses: '/responses',
  messages: '/messages',
}

interface Address {
  base: string
  headers: Readonly<Record<string, string>>
}

/** What is the same for every call; a changed provider is a new object. */
const addresses = new WeakMap<Provider, Address>()

export const openai: ProviderKind = {
  kind: 'openai',
  families: ['chat', 'responses', 'messages'],
  send(provider, call, fetch) {
    let address = addresses.get(provider)
    if (!address) {
      address = addressOf(provider)
      addresses.set(provider, address)
    }
    return fetch(address.base + (paths[call.family] ?? ''), {
      method: 'POST',
      headers: { ...call.headers, 'content-type': call.contentType, ...address.headers },
      body: call.body,
      signal: call.signal,
      // A redirect could carry the credential elsewhere; the gateway has its own deadlines.
      redirect: 'manual',
      timeout: false,
    })
  },
}

function addressOf(provider: Provider): Address {
  const headers: Record<string, string> = { 'accept-encoding': 'identity' }
  if (provider.apiKey !== null) headers.authorization = `Bearer ${provider.apiKey}`
  for (const [name, value] of Object.entries(provider.headers)) headers[name.toLowerCase()] = value
  return { base: baseOf(provider.baseUrl ?? defaultBase), headers }
}

/** `http://host` and `http://host/v1/` both become `http://host/v1`; other paths stay as they are. */
export function baseOf(url: string): string {
  const { origin, pathname } = new URL(url)
  const path = pathname.replace(/\/+$/, '')
  return origin + (path === '' ? '/v1' : path)
}

/**
 * Client id metadata documents (draft-ietf-oauth-client-id-metadata-document; MCP, Client Registration): the id of an
 * application is the https address of its metadata, which is fetched when a person is asked.
 *
 * Whoever sends a person here chooses the address, so: it is fetched for people who are signed in only, from hosts that
 * the setting allows, over https outside our network (`policies/outside-target.ts`), without redirects, bounded in size
 * and time. What it says is kept for minutes, a failure for half a minute, so that nobody has another host called often.
 */
import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import type { Clock } from '../../lib/clock.ts'
import { boundedFetch, type Fetch } from '../../members/identity-providers/bounded-fetch.ts'
import { outsideTarget, type Resolve } from '../../policies/outside-target.ts'
import type { Client } from './client.ts'
import { clientMetadata, unvettedGrants, unvettedScope, usableRedirects } from './unvetted-client.ts'

const bounds = { milliseconds: 5000, bytes: 16 * 1024 }
const longestId = 512
const mostKept = 1000
const keptMilliseconds = { least: 60_000, usual: 5 * 60_000, most: 3_600_000, failure: 30_000 }

/** What is read of a document. */
export type DocumentClient = Pick<Client, 'id' | 'name' | 'redirectUris' | 'scope' | 'grantTypes'>

export interface ClientDocumentOptions {
  fetch: Fetch
  resolve: Resolve
  clock: Pick<Clock, 'monotonic'>
  /** Hosts separated by spaces, * for all, or none. */
  hosts: string
}

export interface ClientDocuments {
  /** Whether any are taken. */
  readonly accepted: boolean
  /** What the document of an id says; in words, why it cannot be used. */
  read(id: string): Promise<DocumentClient | string>
}

interface Kept {
  until: number
  found: Promise<DocumentClient | string>
}

export function clientDocuments({ fetch, resolve, clock, hosts }: ClientDocumentOptions): ClientDocuments {
  const kept = new LRUCache<string, Kept>({ max: mostKept })
  const allowed = hosts.split(' ')
  const accepted = hosts !== 'none'
  return {
    accepted,
    async read(id) {
      const fault = accepted ? idFault(id, allowed) : 'This installation takes no client id metadata documents'
      if (fault !== null) return fault
      const known = kept.get(id)
      if (known !== undefined && clock.monotonic() < known.until) return await known.found
      const entry: Kept = { until: clock.monotonic() + keptMilliseconds.failure, found: Promise.resolve('') }
      entry.found = fetchDocument({ fetch, resolve }, id, (seconds) => {
        entry.until = clock.monotonic() + lifetime(seconds)
      })
      kept.set(id, entry)
      return await entry.found
    },
  }
}

function lifetime(seconds: number | null): number {
  const { least, usual, most } = keptMilliseconds
  return seconds === null ? usual : Math.min(most, Math.max(least, seconds * 1000))
}

/** The form of an id (draft section 3). */
function idFault(id: string, allowed: readonly string[]): string | null {
  const url = id.length > longestId ? null : URL.parse(id)
  const isPlain =
    url !== null &&
    url.protocol === 'https:' &&
    url.href === id &&
    url.pathname !== '/' &&
    url.username === '' &&
    url.password === '' &&
    !/[?#]/.test(id)
  if (!isPlain) return 'client_id is no https address of a document: it has a path, and no user, query or fragment'
  if (allowed.includes('*') || allowed.includes(url.host)) return null
  return 'This installation takes no applications of this host'
}

const documentSchema = clientMetadata.extend({ client_id: z.string(), client_name: clientMetadata.shape.client_name })

async function fetchDocument(
  { fetch, resolve }: Pick<ClientDocumentOptions, 'fetch' | 'resolve'>,
  id: string,
  keep: (seconds: number | null) => void,
): Promise<DocumentClient | string> {
  const bounded = boundedFetch(async (address, options) => {
    const target = await outsideTarget(new URL(address), resolve)
    if (target === null) throw new Error('The host is not outside')
    return await fetch(target.url, options)
  }, bounds)
  try {
    const answer = await bounded(id, { headers: { accept: 'application/json' } })
    if (answer.status !== 200) return `The document of the application answered ${answer.status}`
    const document = documentSchema.safeParse(JSON.parse(await answer.text()))
    if (!document.success) return 'The document of the application is no client metadata'
    const client = clientOf(id, document.data)
    if (typeof client !== 'string') keep(maxAgeOf(answer.headers.get('cache-control')))
    return client
  } catch {
    // What an address inside answers, or whether there is one, is nobody's business.
    return 'The document of the application cannot be read'
  }
}

function clientOf(id: string, document: z.infer<typeof documentSchema>): DocumentClient | string {
  if (document.client_id !== id) return 'The document is about another application'
  const { token_endpoint_auth_method: method = 'none', redirect_uris, scope } = document
  if (method !== 'none') return 'Applications are public clients here: token_endpoint_auth_method must be none'
  const redirectUris = usableRedirects(redirect_uris)
  if (redirectUris.length === 0) return 'The document names no usable redirect URI'
  const { host } = new URL(id)
  return {
    id,
    name: document.client_name ?? host,
    redirectUris,
    scope: unvettedScope(scope),
    grantTypes: [...unvettedGrants],
  }
}

/** RFC 9111 section 5.2.2; null where nothing is said. */
function maxAgeOf(header: string | null): number | null {
  if (header === null) return null
  if (/\bno-(?:store|cache)\b/i.test(header)) return 0
  const [, seconds] = /\bmax-age\s*=\s*"?(\d{1,9})/i.exec(header) ?? []
  return seconds === undefined ? null : Number(seconds)
}

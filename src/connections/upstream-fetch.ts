/**
 * `fetch` for addresses that documents of an MCP server name. Such a document may name anything, so a call goes only
 * to https at an address outside, or to an origin that an operator wrote into the server's record: its URL, and its
 * authorization server. No redirect is followed, and an answer is bounded in time and size.
 */
import { boundedFetch, type Fetch } from '../members/identity-providers/bounded-fetch.ts'
import { outsideTarget } from '../policies/outside-target.ts'
import type { ConnectionDependencies } from './dependencies.ts'
import type { PersonalServer } from './personal-server.ts'

/** The whole answer of a server or an authorization server. */
const bounds = { milliseconds: 10_000, bytes: 128 * 1024 }

/** Rejects with a `ProviderRefusal` where an address may not be called, or gives no usable answer. */
export function upstreamFetch(
  { fetch, resolve }: Pick<ConnectionDependencies, 'fetch' | 'resolve'>,
  server: Pick<PersonalServer, 'url' | 'personal'>,
): Fetch {
  const named = namedOrigins(server)
  return boundedFetch(async (url, options) => {
    const asked = new URL(url)
    if (named.includes(asked.origin)) return await fetch(url, options)
    const target = asked.protocol === 'https:' ? await outsideTarget(asked, resolve) : null
    if (target === null) {
      throw new Error(`${asked.origin} is not outside over https: write it as issuer if it is the authorization server`)
    }
    return await fetch(target.url, options)
  }, bounds)
}

/** The origins that an operator wrote down. */
export const namedOrigins = ({ url, personal: { issuer } }: Pick<PersonalServer, 'url' | 'personal'>): string[] =>
  [url, issuer].flatMap((address) => (address === undefined ? [] : [new URL(address).origin]))

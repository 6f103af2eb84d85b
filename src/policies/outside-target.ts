/**
 * The address that a call to a host of others goes to. The host is resolved each time, and every address that it has
 * must be outside (`addresses.ts`). Over http the call goes to the address that was checked; over https the
 * certificate must be the host's, which a service inside that a resolver is talked into naming does not have.
 */
import { isIP } from 'node:net'
import { isInside } from './addresses.ts'

export type Resolve = (host: string) => Promise<readonly string[]>

/** The first address of a host; null if it has an address inside, or none. */
export async function outsideAddress(host: string, resolve: Resolve): Promise<string | null> {
  const name = host.replace(/^\[(.*)\]$/, '$1')
  const addresses = isIP(name) === 0 ? await resolve(name) : [name]
  const [first] = addresses
  return first === undefined || addresses.some(isInside) ? null : first
}

/** The URL to call and its Host header; null if the host has an address inside, or none. */
export async function outsideTarget(asked: URL, resolve: Resolve): Promise<{ url: string; host: string } | null> {
  const target = new URL(asked)
  const { host } = target
  const address = await outsideAddress(target.hostname, resolve)
  if (address === null) return null
  if (target.protocol === 'http:') target.hostname = isIP(address) === 6 ? `[${address}]` : address
  return { url: target.href, host }
}

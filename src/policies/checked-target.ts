/**
 * Where a call that an operator configured goes. The host is resolved each time, and every address it has must be
 * outside (`addresses.ts`), unless the settings allow others. Over http the call goes to the address that was checked;
 * over https the certificate must be the host's, which a service inside that a resolver is talked into naming does not
 * have.
 */
import { isIP } from 'node:net'
import { isInside } from './addresses.ts'

export interface OutboundRules {
  /** All addresses of a host name. */
  resolve(host: string): Promise<readonly string[]>
  /** Whether addresses of the inside network may be called: the setting `webhook_addresses`. */
  insideAllowed: boolean
}

/** The first address of a host, all of which were checked. Throws if one is inside, or there is none. */
export async function checkedAddress(host: string, { resolve, insideAllowed }: OutboundRules): Promise<string> {
  const name = host.replace(/^\[(.*)\]$/, '$1')
  const addresses = isIP(name) === 0 ? await resolve(name) : [name]
  const [first] = addresses
  if (first === undefined || (!insideAllowed && addresses.some(isInside))) {
    throw new Error('It is at an address inside, which webhook_addresses does not allow')
  }
  return first
}

/** The URL to call and its Host header. Throws as `checkedAddress` does. */
export async function checkedTarget(asked: URL, rules: OutboundRules): Promise<{ url: string; host: string }> {
  const { host } = asked
  if (rules.insideAllowed) return { url: asked.href, host }
  const address = await checkedAddress(asked.hostname, rules)
  if (asked.protocol === 'http:') asked.hostname = isIP(address) === 6 ? `[${address}]` : address
  return { url: asked.href, host }
}

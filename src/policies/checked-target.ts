/**
 * Where a call that an operator configured goes: to an address outside (`outside-target.ts`), unless the settings allow
 * others.
 */
import { outsideAddress, outsideTarget, type Resolve } from './outside-target.ts'

export interface OutboundRules {
  /** All addresses of a host name. */
  resolve: Resolve
  /** Whether addresses of the inside network may be called: the setting `webhook_addresses`. */
  insideAllowed: boolean
}

const inside = 'It is at an address inside, which webhook_addresses does not allow'

/** The address of a host to connect to; the host itself where any may be called. Throws if one is inside, or none. */
export async function checkedAddress(host: string, { resolve, insideAllowed }: OutboundRules): Promise<string> {
  const address = insideAllowed ? host : await outsideAddress(host, resolve)
  if (address === null) throw new Error(inside)
  return address
}

/** The URL to call and its Host header. Throws as `checkedAddress` does. */
export async function checkedTarget(
  asked: URL,
  { resolve, insideAllowed }: OutboundRules,
): Promise<{ url: string; host: string }> {
  if (insideAllowed) return { url: asked.href, host: asked.host }
  const target = await outsideTarget(asked, resolve)
  if (target === null) throw new Error(inside)
  return target
}

/**
 * Which network addresses a webhook may be called at. Loopback, link-local (cloud metadata services answer there),
 * private, carrier, multicast and reserved ranges (IANA's special-purpose registries, RFC 6890) are inside: only where
 * the operator's settings say so.
 */
import { BlockList, isIP } from 'node:net'

const insideFour: readonly (readonly [base: string, bits: number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
]

/** Addresses of version 6 that stand for one of version 4: IPv4-mapped, and NAT64 (RFC 6052). */
const wrapping = ['::ffff:', '64:ff9b::'] as const

/** Of version 6 only global unicast and what stands for an address of version 4 can be outside. */
const perhapsOutside = new BlockList()
perhapsOutside.addSubnet('2000::', 3, 'ipv6')

const inside = new BlockList()
// What wraps or tunnels other addresses, and what is for documents.
inside.addSubnet('2001::', 23, 'ipv6')
inside.addSubnet('2001:db8::', 32, 'ipv6')
inside.addSubnet('2002::', 16, 'ipv6')
inside.addSubnet('3fff::', 20, 'ipv6')
for (const [base, bits] of insideFour) inside.addSubnet(base, bits, 'ipv4')
for (const prefix of wrapping) {
  perhapsOutside.addSubnet(`${prefix}0.0.0.0`, 96, 'ipv6')
  for (const [base, bits] of insideFour) inside.addSubnet(prefix + base, 96 + bits, 'ipv6')
}

/** Whether an address belongs to the network inside; true for what is no address. */
export function isInside(address: string): boolean {
  // A zone is not part of the address, and belongs to link-local addresses.
  const [plain = ''] = address.split('%')
  const version = isIP(plain)
  if (version === 4) return inside.check(plain, 'ipv4')
  return version !== 6 || !perhapsOutside.check(plain, 'ipv6') || inside.check(plain, 'ipv6')
}

/**
 * Network addresses that a webhook may be called at. Loopback, link-local (cloud metadata services answer there),
 * private, carrier, multicast and reserved ranges (IANA's special-purpose registries, RFC 6890) count as inside: they
 * are allowed only if the operator's settings say so.
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

/** IPv6 addresses that represent an IPv4 address: IPv4-mapped, and NAT64 (RFC 6052). */
const wrapping = ['::ffff:', '64:ff9b::'] as const

/** Among IPv6 addresses only global unicast and those that represent an IPv4 address can be outside. */
const perhapsOutside = new BlockList()
perhapsOutside.addSubnet('2000::', 3, 'ipv6')

const inside = new BlockList()
// Ranges that wrap or tunnel other addresses, and ranges for documentation.
inside.addSubnet('2001::', 23, 'ipv6')
inside.addSubnet('2001:db8::', 32, 'ipv6')
inside.addSubnet('2002::', 16, 'ipv6')
inside.addSubnet('3fff::', 20, 'ipv6')
for (const [base, bits] of insideFour) inside.addSubnet(base, bits, 'ipv4')
for (const prefix of wrapping) {
  perhapsOutside.addSubnet(`${prefix}0.0.0.0`, 96, 'ipv6')
  for (const [base, bits] of insideFour) inside.addSubnet(prefix + base, 96 + bits, 'ipv6')
}

/** Whether an address belongs to the inside network; true for an invalid address. */
export function isInside(address: string): boolean {
  // A zone is not part of the address, and belongs to link-local addresses.
  const [plain = ''] = address.split('%')
  const version = isIP(plain)
  if (version === 4) return inside.check(plain, 'ipv4')
  return version !== 6 || !perhapsOutside.check(plain, 'ipv6') || inside.check(plain, 'ipv6')
}

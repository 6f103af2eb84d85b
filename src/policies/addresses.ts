/**
 * Which network addresses a webhook may be called at. Loopback, link-local (cloud metadata services answer there),
 * private, carrier, multicast and reserved ranges (IANA's special-purpose registries, RFC 6890) are inside: only where
 * the operator's settings say so.
 */
import { isIP } from 'node:net'

type Range = readonly [base: string, bits: number]

const insideFour: readonly Range[] = [
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

/** Of version 6 only global unicast (2000::/3) is outside, and of that not what wraps or tunnels other addresses. */
const insideSix: readonly Range[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
]

/** Whether an address belongs to the network inside; true for what is no address. */
export function isInside(address: string): boolean {
  if (isIP(address) === 4) return insideFour.some(([base, bits]) => within(fourBytes(address), fourBytes(base), bits))
  if (isIP(address) !== 6) return true
  const bytes = sixBytes(address)
  const wrapped = fourInSix(bytes)
  if (wrapped !== null) return isInside(wrapped)
  const global = within(bytes, sixBytes('2000::'), 3)
  return !global || insideSix.some(([base, bits]) => within(bytes, sixBytes(base), bits))
}

function within(bytes: readonly number[], base: readonly number[], bits: number): boolean {
  for (let bit = 0; bit < bits; bit += 8) {
    const mask = (0xff << Math.max(0, 8 - (bits - bit))) & 0xff
    if (((bytes[bit / 8] ?? 0) & mask) !== ((base[bit / 8] ?? 0) & mask)) return false
  }
  return true
}

const fourBytes = (address: string): number[] => address.split('.').map(Number)

/** RFC 4291 section 2.2, its form with a dotted end included; a zone is not part of the address. */
function sixBytes(address: string): number[] {
  const [plain = ''] = address.split('%')
  const dotted = /(\d+\.\d+\.\d+\.\d+)$/.exec(plain)?.[1]
  const hexed = dotted === undefined ? plain : plain.slice(0, -dotted.length) + hexOf(fourBytes(dotted))
  const [head = '', tail] = hexed.split('::')
  const groups = (part: string | undefined) => (part ? part.split(':') : [])
  const [before, after] = [groups(head), groups(tail)]
  const zeros = tail === undefined ? [] : Array<string>(Math.max(0, 8 - before.length - after.length)).fill('0')
  return [...before, ...zeros, ...after].flatMap((group) => {
    const value = Number.parseInt(group, 16)
    return [value >> 8, value & 0xff]
  })
}

const hexOf = ([a = 0, b = 0, c = 0, d = 0]: readonly number[]): string =>
  `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`

/** The address that an IPv4-mapped (::ffff:0:0/96) or NAT64 (64:ff9b::/96) one stands for; null for any other. */
function fourInSix(bytes: readonly number[]): string | null {
  const prefixes = [sixBytes('::ffff:0:0'), sixBytes('64:ff9b::')]
  return prefixes.some((prefix) => within(bytes, prefix, 96)) ? bytes.slice(12).join('.') : null
}

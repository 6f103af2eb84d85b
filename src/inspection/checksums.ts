/** The checks that tell a number of a kind from any other row of digits. */
import { encodeBase62 } from '../lib/base62.ts'

/** ISO/IEC 7812-1 annex B. */
export function passesLuhn(digits: string): boolean {
  let sum = 0
  for (let index = 0; index < digits.length; index++) {
    const digit = Number(digits[digits.length - 1 - index])
    const doubled = index % 2 === 1 ? digit * 2 : digit
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}

/** Issuer ranges and lengths of payment cards; the rest of a row of digits with a right check digit is chance. */
const cardRanges: readonly RegExp[] = [
  /^4(?:\d{12}|\d{15}|\d{18})$/,
  /^5[1-5]\d{14}$/,
  /^2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}$/,
  /^3[47]\d{13}$/,
  /^3(?:0[0-5]|[689]\d)\d{11}$/,
  /^35(?:2[89]|[3-8]\d)\d{12}$/,
  /^(?:1800|2131)\d{11}$/,
  /^6(?:011|4[4-9]\d|5\d\d)\d{12}(?:\d{3})?$/,
  /^62\d{14,17}$/,
  /^(?:50|5[6-9]|6[0-9]|0604)\d{8,17}$/,
]

export function isCardNumber(text: string): boolean {
  const digits = text.replace(/\D/g, '')
  return (
    digits.length >= 12 && digits.length <= 19 && cardRanges.some((range) => range.test(digits)) && passesLuhn(digits)
  )
}

/** Lengths by country (ISO 13616 registry); a country that is not listed is taken at any length. */
const ibanLengths: Readonly<Record<string, number>> = {
  AD: 24,
  AE: 23,
  AT: 20,
  BE: 16,
  BG: 22,
  BR: 29,
  CH: 21,
  CY: 28,
  CZ: 24,
  DE: 22,
  DK: 18,
  EE: 20,
  ES: 24,
  FI: 18,
  FR: 27,
  GB: 22,
  GR: 27,
  HR: 21,
  HU: 28,
  IE: 22,
  IL: 23,
  IS: 26,
  IT: 27,
  LI: 21,
  LT: 20,
  LU: 20,
  LV: 21,
  MC: 27,
  MT: 31,
  NL: 18,
  NO: 15,
  PL: 28,
  PT: 25,
  RO: 24,
  SA: 24,
  SE: 24,
  SI: 19,
  SK: 24,
  TR: 26,
  UA: 29,
}

/** ISO 13616: the rearranged number leaves 1 when divided by 97. Made of digits, capital letters and spaces. */
export function isIban(text: string): boolean {
  let characters = 0
  for (let index = 0; index < text.length; index++) if (text.charCodeAt(index) !== space) characters++
  if (characters < 15 || characters > 34) return false
  const length = ibanLengths[text.slice(0, 2)]
  if (length !== undefined && characters !== length) return false
  let remainder = 0
  for (let index = 4; index < text.length; index++) remainder = appended(remainder, text.charCodeAt(index))
  for (let index = 0; index < 4; index++) remainder = appended(remainder, text.charCodeAt(index))
  return remainder === 1
}

const space = 0x20

/** A number, modulo 97, with what a character stands for written behind it: `A` is 10. */
function appended(number: number, unit: number): number {
  if (unit === space) return number
  return unit < 0x40 ? (number * 10 + unit - 0x30) % 97 : (number * 100 + unit - 0x37) % 97
}

/** Area, group and serial are never all zeros, and areas 666 and from 900 on are not given out. */
export function isSocialSecurityNumber(text: string): boolean {
  const [area = '', group = '', serial = ''] = text.split(/[- ]/)
  return area !== '000' && area !== '666' && area < '900' && group !== '00' && serial !== '0000'
}

/** Link-local, unique local and the assigned part of the global addresses (RFC 4291 section 2.5, RFC 4193 section 3). */
const addressBegin = /^(?:fe[89ab][0-9a-f]|f[cd][0-9a-f]{2}|2[0-9a-f]{3})$/i

/**
 * RFC 4291 section 2.2, without the mixed form. What is as short as `a::b` is an address only where it begins as those
 * that are in use; the loopback is one too.
 */
export function isIpv6(text: string): boolean {
  const halves = text.split('::')
  if (halves.length > 2) return false
  const groups = halves.flatMap((half) => (half === '' ? [] : half.split(':')))
  if (groups.some((group) => !/^[0-9A-Fa-f]{1,4}$/.test(group))) return false
  if (halves.length !== 2) return groups.length === 8
  if (text === '::1') return true
  const [first = ''] = groups
  if (groups.length === 2) return halves[0] === first && addressBegin.test(first)
  return groups.length > 2 && groups.length <= 7 && /\d/.test(text)
}

/** One of this product's own secrets: its last six characters are the checksum of what precedes (contract section 3). */
export const isOwnSecret = (text: string): boolean =>
  encodeBase62(Bun.hash.crc32(text.slice(0, -6)), 6) === text.slice(-6)

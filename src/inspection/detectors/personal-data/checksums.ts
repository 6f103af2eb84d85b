/** The checks that distinguish a number of a kind from other digits. */
import { encodeBase62 } from '../../../lib/base62.ts'

/** ISO/IEC 7812-1 annex B. */
function passesLuhn(digits: string): boolean {
  let sum = 0
  for (let index = 0; index < digits.length; index++) {
    const digit = Number(digits[digits.length - 1 - index])
    const doubled = index % 2 === 1 ? digit * 2 : digit
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}

/** Issuer ranges and lengths of payment cards; other digits with a valid check digit are chance. */
const cardRanges: readonly RegExp[] = [
  /^4(?:\d{12}|\d{15}|\d{18})$/,
  /^5[1-5]\d{14}$/,
  /^2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}$/,
  /^3[47]\d{13}$/,
  /^3(?:0[0-5]|[689]\d)\d{11}$/,
  /^35\d{14}$/,
  /^(?:1800|2131)\d{11}$/,
  /^6(?:011|4[4-9]\d|5\d\d)\d{12}(?:\d{3})?$/,
  /^62\d{14,17}$/,
  /^(?:50|5[6-9]|6[0-9]|0604)\d{8,17}$/,
]

/**
 * Digits and the separators of their groups. One line break is allowed; more make a column of numbers. Groups as at the
 * beginning of a UUID are no card.
 */
export function isCardNumber(text: string): boolean {
  const digits = text.replace(/\D/g, '')
  return (
    digits.length >= 12 &&
    digits.length <= 19 &&
    (text.match(/\n/g) ?? []).length < 2 &&
    isGroupedAsCard(text) &&
    !/^\d{8}-\d{4}(?:-\d{1,3})?$/.test(text) &&
    cardRanges.some((range) => range.test(digits)) &&
    passesLuhn(digits)
  )
}

/**
 * Groups of four, or of four, six and the rest, distinguish a card from columns of numbers; with spaces or hyphens, any
 * three or more groups.
 */
const isGroupedAsCard = (text: string): boolean => {
  const isUsual = /^[\d -]*$/.test(text)
  return text
    .split(/\D+/)
    .slice(0, -1)
    .every(({ length }, index) => length === 4 || (index === 1 && length === 6) || (isUsual && length > 2))
}

/** Countries by the length of their IBANs (ISO 13616 registry). */
const ibanCountries: readonly (readonly [number, string])[] = [
  [15, 'NO'],
  [16, 'BE'],
  [18, 'DK FI FK FO GL NL SD'],
  [19, 'MK SI'],
  [20, 'AT BA EE KZ LT LU MN XK'],
  [21, 'CH HR LI LV'],
  [22, 'BG BH CR DE GB GE IE ME RS VA'],
  [23, 'AE GI IL IQ OM SO TL'],
  [24, 'AD CZ ES MD PK RO SA SE SK TN VG'],
  [25, 'LY PT ST'],
  [26, 'IS TR'],
  [27, 'BI DJ FR GR IT MC MR SM'],
  [28, 'AL AZ BY CY DO GT HN HU LB NI PL SV'],
  [29, 'BR EG PS QA UA'],
  [30, 'JO KW MU YE'],
  [31, 'MT SC'],
  [32, 'LC'],
  [33, 'RU'],
]
const ibanLengths = new Map(
  ibanCountries.flatMap(([length, countries]) => countries.split(' ').map((country) => [country, length] as const)),
)

/** ISO 13616: the rearranged number modulo 97 is 1. It consists of digits, letters and separators. */
export function isIban(text: string): boolean {
  const characters = text.replace(/[^0-9A-Za-z]/g, '').toUpperCase()
  if (characters.length !== (ibanLengths.get(characters.slice(0, 2)) ?? unlistedLength(text))) return false
  if (uuidPart.test(text)) return false
  if (/[a-z]/.test(text) && text.length > characters.length && isMostlyLetters(characters)) return false
  let remainder = 0
  for (let index = 0; index < characters.length; index++) {
    remainder = appended(remainder, characters.charCodeAt((index + 4) % characters.length))
  }
  return remainder === 1
}

const uuidPart = /^[\da-f]{8}-[\da-f]{4}-|^[\da-f]{4}-[\da-f]{12}$/

/** An unlisted country is accepted with any length if it is in capitals, without spaces or in groups of four. */
const unlistedLength = (text: string): number | null =>
  /^(?:[0-9A-Z]{15,34}|(?:[0-9A-Z]{4} ){3,8}[0-9A-Z]{1,4})$/.test(text) ? text.replaceAll(' ', '').length : null

/** As in `is 26 years old`: one in a hundred such sentences with small letters in groups passes the checksum. */
const isMostlyLetters = (characters: string): boolean => characters.replace(/\D/g, '').length * 2 < characters.length

/** A number, modulo 97, with a character's value appended: `A` is 10. */
const appended = (number: number, unit: number): number =>
  unit < 0x40 ? (number * 10 + unit - 0x30) % 97 : (number * 100 + unit - 0x37) % 97

/** Area, group and serial are never all zeros, and areas 666 and 900 or more are not issued. */
export function isSocialSecurityNumber(text: string): boolean {
  const [area = '', group = '', serial = ''] = text.split(/\D/)
  return area !== '000' && area !== '666' && area < '900' && group !== '00' && serial !== '0000'
}

/**
 * Addresses that belong to no host of a person: the loopback and the unspecified address, masks, and a program's
 * version with three zeros (`Chrome/138.0.0.0`).
 */
export const isHostIpv4 = (text: string): boolean => !/^(?:127\.|0\.|255\.255\.)|\.0\.0\.0\.?$/.test(text)

const noReply = /^(?:no|do-?not)[-_.]?reply@/i

/** Addresses that reach nobody (`noreply@`), and the user of Git over SSH (`git@`), belong to no person. */
export const isPersonalEmail = (text: string): boolean => !noReply.test(text) && !/^git@/i.test(text)

/**
 * Link-local, unique local and the assigned part of the global addresses (RFC 4291 section 2.5, RFC 4193 section 3).
 */
const addressBegin = /^(?:fe[89ab][0-9a-f]|f[cd][0-9a-f]{2}|2[0-9a-f]{3})$/i

/**
 * RFC 4291 section 2.2, without the mixed form. A form as short as `a::b` counts only if it begins like addresses in
 * use; the loopback address does not count.
 */
export function isIpv6(text: string): boolean {
  const halves = text.split('::')
  if (halves.length > 2) return false
  const groups = halves.flatMap((half) => (half === '' ? [] : half.split(':')))
  if (groups.some((group) => !/^[0-9A-Fa-f]{1,4}$/.test(group))) return false
  if (halves.length !== 2) return groups.length === 8
  if (text === '::1') return false
  const [first = ''] = groups
  if (groups.length === 2) return halves[0] === first && addressBegin.test(first)
  return groups.length > 2 && groups.length <= 7 && /\d/.test(text)
}

/** One of this product's own secrets: its last six characters are the checksum of the rest (identity/README.md). */
export const isOwnSecret = (text: string): boolean =>
  encodeBase62(Bun.hash.crc32(text.slice(0, -6)), 6) === text.slice(-6)

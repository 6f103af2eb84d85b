/**
 * The forms of personal data in text, by type. Each is a pattern of bounded length, most with a check. They prefer to
 * find too much: digits with another meaning may match too.
 */

import { type PatternSource, patternDetector } from '../../regex/pattern-detector.ts'
import { combinedDetector } from '../combined-detector.ts'
import type { Detector } from '../detector.ts'
import { isCardNumber, isHostIpv4, isIban, isIpv6, isPersonalEmail, isSocialSecurityNumber } from './checksums.ts'
import { phoneDetector } from './phone-detector.ts'

export const personalDataTypes = ['email', 'phone', 'card', 'iban', 'ssn', 'ip', 'date_of_birth'] as const
export type PersonalDataType = (typeof personalDataTypes)[number]

/** Hyphens, dashes and the minus sign, within a class. */
const dashes = String.raw`\-\u2010-\u2015\u2212`
const cardSeparators = String.raw`[ \t\r\n._/·${dashes}]{1,3}`
const cardDigits = String.raw`(?:\d{12,19}|\d{0,12}\d{3}${cardSeparators}\d{3}\d{0,12}(?:${cardSeparators}\d{3,15}){0,4}(?:${cardSeparators}\d{1,7})?)`
const octet = String.raw`(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`
const months =
  '(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)'
const day = '(?:0?[1-9]|[12][0-9]|3[01])'
const month = '(?:0?[1-9]|1[0-2])'
const year = '(?:19|20)[0-9]{2}'

/** Types that a pattern describes; phone numbers also need the words beside them. */
export const personalData: Readonly<Record<Exclude<PersonalDataType, 'phone'>, readonly PatternSource[]>> = {
  email: [
    {
      label: 'EMAIL',
      // RFC 5321 section 4.5.3.1: 64 before the @; labels of at most 63 after it, as many as 512 characters allow.
      pattern: String.raw`(?<![\p{L}\p{N}._%+\-])[\p{L}\p{N}._%+\-]{1,64}@(?:[\p{L}\p{N}](?:[\p{L}\p{N}\-]{0,62})\.){1,6}[\p{L}]{2,24}`,
      check: isPersonalEmail,
    },
  ],
  card: [
    {
      label: 'CARD',
      // Not in a hash or a UUID: beside a hexadecimal digit on the one side, and a digit or a hyphen on the other.
      pattern: String.raw`(?<![\da-fA-F.\-])${cardDigits}(?!\d)|(?<![\d.\-])${cardDigits}(?![\da-fA-F\-])`,
      check: isCardNumber,
    },
  ],
  iban: [
    {
      label: 'IBAN',
      pattern: String.raw`(?<![A-Za-z0-9])(?:[A-Za-z]{2}|[A-Z]{2}[ \t.${dashes}]{1,2})\d{2}(?:[ \t\r\n._/·${dashes}]{0,2}[A-Za-z0-9]){11,30}(?![A-Za-z0-9])`,
      check: isIban,
    },
  ],
  ssn: [
    {
      label: 'SSN',
      pattern: String.raw`(?<![\d\-])\d{3}[ .${dashes}]\d{2}[ .${dashes}]\d{4}(?![\d\-])`,
      check: isSocialSecurityNumber,
    },
  ],
  ip: [
    { label: 'IP', pattern: String.raw`(?<![\w.])(?:${octet}\.){3}${octet}(?![\w.])`, check: isHostIpv4 },
    // A point after an address ends a sentence; with a digit after it, it is a version number of five parts.
    {
      label: 'IP',
      pattern: String.raw`(?<![\w.])(?:${octet}\.){3}${octet}\.(?!\d)`,
      check: isHostIpv4,
      endsBefore: true,
    },
    {
      label: 'IP',
      pattern: String.raw`(?<![\w:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:])`,
      check: isIpv6,
    },
  ],
  date_of_birth: [
    {
      label: 'DATE_OF_BIRTH',
      caseInsensitive: true,
      pattern: String.raw`(?<![\w/.\-])(?:${day}[/.\-]${month}[/.\-]${year}|${month}[/.\-]${day}[/.\-]${year}|${year}[/.\-]${month}[/.\-]${day}|${day}(?:st|nd|rd|th)? ${months},? ${year}|${months} ${day}(?:st|nd|rd|th)?,? ${year})(?![\w/])`,
    },
  ],
}

const detectors = new Map<string, Detector>()

/** The detector of these types, in any order; compiled once for each set of types. */
export function personalDataDetector(types: readonly PersonalDataType[]): Detector {
  const chosen = [...new Set(types)].sort()
  const name = chosen.join()
  let detector = detectors.get(name)
  if (detector === undefined) {
    const sources = chosen.flatMap((type) => (type === 'phone' ? [] : personalData[type]))
    detector = combinedDetector([
      ...(sources.length > 0 ? [patternDetector(sources, { streaming: true, paramOf: () => 'config.types' })] : []),
      ...(chosen.includes('phone') ? [phoneDetector] : []),
    ])
    detectors.set(name, detector)
  }
  return detector
}

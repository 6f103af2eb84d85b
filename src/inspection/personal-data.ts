/**
 * What personal data looks like in text, by type. Each is a pattern of bounded length, most with a check. They are made
 * to miss little of what is written the usual way; a row of digits that also is something else may be taken for it.
 */
import { isCardNumber, isIban, isIpv6, isSocialSecurityNumber } from './checksums.ts'
import type { Detector } from './detector.ts'
import { type PatternSource, patternDetector } from './pattern-detector.ts'
import { isPhoneNumber } from './phone-number.ts'

export type PersonalDataType = 'email' | 'phone' | 'card' | 'iban' | 'ssn' | 'ip' | 'date_of_birth'

const octet = String.raw`(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`
const months =
  '(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)'
const day = '(?:0?[1-9]|[12][0-9]|3[01])'
const month = '(?:0?[1-9]|1[0-2])'
const year = '(?:19|20)[0-9]{2}'

export const personalData: Readonly<Record<PersonalDataType, readonly PatternSource[]>> = {
  email: [
    {
      label: 'EMAIL',
      // RFC 5321 section 4.5.3.1: 64 before the @; labels of at most 63 after it, as many as 512 characters allow.
      pattern: String.raw`(?<![\p{L}\p{N}._%+\-])[\p{L}\p{N}._%+\-]{1,64}@(?:[\p{L}\p{N}](?:[\p{L}\p{N}\-]{0,62})\.){1,6}[\p{L}]{2,24}`,
    },
  ],
  phone: [
    {
      label: 'PHONE',
      // Written from abroad, or in groups of at least two digits: single digits in a row are no number that is dialled.
      pattern: String.raw`(?<![\w+.\-/])(?:\+ ?\(?\d(?:[ .\-()]{0,3}\d){6,16}|(?:\(\d{1,5}\)[ .\-]{0,2})?\d{2,12}(?:[ .\-]{1,2}\d{2,8}){0,5})(?: ?(?:x|ext\.? ?)\d{1,5})?(?![\w/\-])`,
      check: isPhoneNumber,
    },
    // A card's number in its groups, right or wrong, has parts that look like a phone's.
    {
      label: 'PHONE',
      excludes: true,
      pattern: String.raw`(?<!\d)(?:\d{4} \d{4} \d{4} \d{1,7}|\d{4} \d{6} \d{4,5})(?!\d)`,
    },
  ],
  card: [{ label: 'CARD', pattern: String.raw`(?<![\d.\-])\d{2,19}(?:[ \-]\d{2,6}){0,6}(?!\d)`, check: isCardNumber }],
  iban: [
    {
      label: 'IBAN',
      pattern: String.raw`(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}(?![A-Za-z0-9])`,
      check: isIban,
    },
  ],
  ssn: [
    {
      label: 'SSN',
      pattern: String.raw`(?<![\d\-])(?:\d{3}-\d{2}-\d{4}|\d{3} \d{2} \d{4})(?![\d\-])`,
      check: isSocialSecurityNumber,
    },
  ],
  ip: [
    { label: 'IP', pattern: String.raw`(?<![\w.])(?:${octet}\.){3}${octet}(?!\w)` },
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

/** What finds these types, in any order; compiled once for each choice of them. */
export function personalDataDetector(types: readonly PersonalDataType[]): Detector {
  const chosen = [...new Set(types)].sort()
  const name = chosen.join()
  let detector = detectors.get(name)
  if (detector === undefined) {
    const sources = chosen.flatMap((type) => personalData[type])
    detector = patternDetector(sources, { streaming: true, paramOf: () => 'config.types' })
    detectors.set(name, detector)
  }
  return detector
}

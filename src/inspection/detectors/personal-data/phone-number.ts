/**
 * Finds the phone numbers in a row of digit groups. A number with a country code, an area code in parentheses, an
 * extension, North American grouping or a leading zero counts by itself; any other only beside a word that marks it.
 * Country codes and lengths come from Google's libphonenumber.
 */
import { isPossiblePhoneNumber } from 'libphonenumber-js/min'
import { isArgument, type NumberRole, roleOf } from './phone-context.ts'

/** A stretch of a row; offsets are of its characters. */
interface PhoneSpan {
  readonly start: number
  readonly end: number
}

interface Chunk extends PhoneSpan {
  readonly digits: number
}

const fewestDigits = 7
const mostDigits = 17
/** No number has more groups. */
const mostChunks = 7

const month = '(?:0?[1-9]|1[0-2])'
const date = new RegExp(
  `^(?:(?:19|20)\\d{2}[-./ ]${month}[-./ ]\\d{1,2}|${month}[-./ ]\\d{1,2}[-./ ]\\d{4}|\\d{1,2}[-./ ]${month}[-./ ]\\d{4})(?: \\d.*)?$`,
)
const years = /^(?:19|20)\d{2}[ \-/](?:19|20)\d{2}$/
const thousands = /^\d{1,3}(?:[ .]\d{3})*[ .]000$/
const socialSecurity = /^\d{3}[- ]\d{2}[- ]\d{4}$/
const zipCode = /^\d{5}-\d{4}$/
const address = /^\d{1,3}(?:\.\d{1,3}){3}$/
/** Three, three and four digits; a country code or a trunk prefix may precede them. */
const northAmerican = /^(?:\d{1,3}[-. ])?(?:\(\d{3}\)[-. ]?|\d{3}[-. ])\d{3}[-. ]\d{4}$/
const localBehindCode = /^\d{1,3}[ .-]?\(\d{2,5}\)[ .\-/]{0,2}\d/
const extension = /^ ?(?:(?:x|ext\.?|extension) ?|#)\d{1,6}(?!\w)/i
const plus = /^\(?\+/
const international = /^(?:\(?\+|00[1-9])/

const digitsOf = (text: string): string => text.replace(/\D/g, '')
const groupsOf = (text: string): string[] => text.split(/[ .\-/()]+/)

/** All phone numbers of a row, in order. `after` is the text directly after the row. */
export function phoneNumbersIn(row: string, before: string, after: string): PhoneSpan[] {
  const chunks = chunksOf(row, after)
  const found: PhoneSpan[] = []
  const isExtended = extension.test(row.slice(chunks.at(-1)?.end) + after)
  let role: NumberRole | null = /^\d+\)/.test(row) && isArgument(before) ? 'counted' : null
  let first = 0
  while (first < chunks.length) {
    const candidates = candidatesFrom(row, chunks, first)
    if (candidates.length > 0) role ??= roleOf(before, after)
    const number =
      role === 'counted' && !plus.test(candidates[0]?.text ?? '')
        ? undefined
        : (internationalOf(candidates) ?? nationalOf(candidates, role ?? 'unsaid', isExtended))
    if (number === undefined) first++
    else {
      const last = withRest(chunks, first, number.last)
      const end = chunks[last]?.end ?? 0
      const more = last < chunks.length - 1 ? null : extension.exec(row.slice(end) + after)
      found.push({ start: chunks[first]?.start ?? 0, end: end + (more?.[0].length ?? 0) })
      first = last + 1
    }
  }
  return found
}

/** The chunks between spaces; a last one that other text continues does not count. */
function chunksOf(row: string, after: string): Chunk[] {
  const chunks: Chunk[] = []
  for (const match of row.matchAll(/[^ ]+/g)) {
    const chunk = trimmed(match[0], match.index)
    if (chunk.digits > 0) chunks.push(chunk)
  }
  const last = chunks.at(-1)
  const isIdentifier = row.endsWith('-') && identifierRest.test(after)
  if (isIdentifier || (last?.end === row.length && continues.test(after) && !extension.test(after))) chunks.pop()
  return chunks
}

/** Without trailing separators, and without parentheses around it or an unclosed one before it. */
function trimmed(word: string, at: number): Chunk {
  let start = 0
  while (word[start] === '(' && !areaCode.test(word.slice(start))) start++
  let end = word.length
  const isOver = (): boolean => {
    const last = word[end - 1] ?? ''
    return last === ')' ? count(word, ')', start, end) > count(word, '(', start, end) : '-./('.includes(last)
  }
  while (end > start && isOver()) end--
  return { start: at + start, end: at + end, digits: digitsOf(word.slice(start, end)).length }
}

const areaCode = /^\(\+?\d{1,5}\)/

function count(word: string, wanted: string, start: number, end: number): number {
  let times = 0
  for (let index = start; index < end; index++) if (word[index] === wanted) times++
  return times
}

/** What follows the first digits and the hyphen of an identifier such as a UUID. */
const identifierRest = /^(?:\w*\d|[0-9a-f]{4}-)/i
const continues = /^(?:[\p{L}_%°@=:\\]|,\d)/u

interface Candidate {
  readonly text: string
  readonly digits: number
  readonly last: number
  /** It is the whole row. */
  readonly isRow: boolean
}

/** The numbers that begin with a chunk and have a valid count of digits, the longest first. */
function candidatesFrom(row: string, chunks: readonly Chunk[], first: number): Candidate[] {
  const candidates: Candidate[] = []
  const start = chunks[first]?.start ?? 0
  const most = Math.min(chunks.length, first + mostChunks)
  let digits = 0
  for (let last = first; last < most; last++) {
    const chunk = chunks[last]
    digits += chunk?.digits ?? 0
    if (digits > mostDigits) break
    if (digits < fewestDigits) continue
    const text = row.slice(start, chunk?.end)
    if (isWritten(text)) candidates.unshift({ text, digits, last, isRow: first === 0 && last === chunks.length - 1 })
  }
  return candidates
}

/** Whether parentheses hold one group, a plus sign comes first, and not all digits are zeros. */
const isWritten = (text: string): boolean =>
  (text.lastIndexOf('+') < 1 || text.startsWith('(+')) &&
  (/[()]/.test(text) ? !/[()]/.test(text.replace(/\(\+?\d{1,5}\)/, '')) : true) &&
  /[1-9]/.test(text)

const internationalOf = (candidates: readonly Candidate[]): Candidate | undefined => {
  const [longest] = candidates
  if (longest === undefined || !international.test(longest.text)) return undefined
  return (
    candidates.find(({ text }) => isInternational(text)) ?? candidates.find(({ text }) => isLikeInternational(text))
  )
}

const nationalOf = (candidates: readonly Candidate[], role: NumberRole, isExtended: boolean): Candidate | undefined =>
  candidates.find(
    ({ text, digits, isRow }) =>
      (role !== 'counted' && (isKnownByForm(text, digits) || (isRow && isExtended && digits <= 13))) ||
      (isRow &&
        (role === 'dialled' || (role === 'mentioned' && !isQuantity(text, digits))) &&
        isPlausible(text, digits)),
  )

/** A last group that may belong to the number is included, so that no part of a number remains. */
function withRest(chunks: readonly Chunk[], first: number, last: number): number {
  const rest = chunks[last + 1]
  if (rest === undefined || last + 2 !== chunks.length || rest.digits < 3) return last
  const digits = chunks.slice(first).reduce((sum, chunk) => sum + chunk.digits, 0)
  return digits <= 13 ? last + 1 : last
}

function isInternational(text: string): boolean {
  const digits = digitsOf(text.replace('(0)', '')).replace(/^00/, '')
  return digits.length >= fewestDigits && digits.length <= 15 && isPossiblePhoneNumber(`+${digits}`)
}

/** Made-up numbers in the usual form of their country. */
const isLikeInternational = (text: string): boolean => {
  const { length } = digitsOf(text)
  return length >= 8 && length <= 15 && groupsOf(text).length > 2
}

/** Whether digits are grouped as only a phone number is. */
function isKnownByForm(text: string, digits: number): boolean {
  if (digits > 13 || isOtherNumber(text) || zipCode.test(text) || padded.test(text)) return false
  if (text.startsWith('(')) return /^\(\d{2,5}\)[ .\-/]{0,2}\d/.test(text)
  if (text.startsWith('0')) {
    const groups = groupsOf(text)
    if (groups.length === 1) return digits === 10 || digits === 11
    if (digits >= 9 && (digits <= 11 || groups.length > 2)) return groups.slice(1).every(({ length }) => length > 1)
  }
  if (digits < 10) return false
  return northAmerican.test(text) || localBehindCode.test(text)
}

/**
 * Whether digits are rather a range (`250-30000`), a round number or a time in seconds or milliseconds since 1970.
 * Three and four digits are a local phone number.
 */
function isQuantity(text: string, digits: number): boolean {
  if (text.startsWith('0')) return padded.test(text)
  const [first = '', second, ...more] = groupsOf(text)
  if (second === undefined) return round.test(first) || (epoch.test(first) && (digits === 10 || digits === 13))
  if (more.length > 0 || !text.includes('-') || (first.length === 3 && second.length === 4)) return false
  return Number(first) < Number(second) && (second.endsWith('00') || isPowerOfTwo(Number(second)))
}

/** A number filled up with zeros, or the ten digits in order. */
const padded = /^000|^0123456789$/
const round = /^\d{1,3}0{4,}$/
/** From 2017 to 2033. */
const epoch = /^1[5-9]/
const isPowerOfTwo = (value: number): boolean =>
  Number.isInteger(Math.log2(value)) || Number.isInteger(Math.log2(value + 1))

/** Whether it may be a number if a word beside it says so. */
const isPlausible = (text: string, digits: number): boolean => {
  const groups = groupsOf(text)
  return (
    digits <= 13 && groups.length <= 6 && groups.slice(1).every(({ length }) => length !== 1) && !isOtherNumber(text)
  )
}

const isOtherNumber = (text: string): boolean =>
  date.test(text) || years.test(text) || thousands.test(text) || socialSecurity.test(text) || address.test(text)

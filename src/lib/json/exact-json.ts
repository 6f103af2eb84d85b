/**
 * JSON that keeps every number exactly. JSON that is parsed and written again, or is a text in one language and an
 * object in another, passes through a value; a number that a double cannot hold (an id above 2^53, `-0`, `1e400`)
 * would change. Such a number is kept as its own text (`JSON.rawJSON`), which `JSON.stringify` writes again; all
 * others are numbers. `parseSpelt` also keeps every other spelling, for messages that are passed on.
 *
 * A text that may contain one is checked by `JSON.parse` and then read here. The reviver of `JSON.parse` also gets
 * each number's text (`context.source`), but of two members with one name it sees the last only, and it costs more:
 * 1.7 µs where this takes 1.4 µs for the arguments of a tool call, and for ten megabytes of short lists 1.4 s and 1.5
 * GB where this takes 0.6 s and 0.3 GB.
 */
import { endOfString } from './string-end.ts'

/** A number that no double can hold, as it was written. */
export interface ExactNumber {
  readonly rawJSON: string
}

declare global {
  interface JSON {
    rawJSON(text: string): ExactNumber
    isRawJSON(value: unknown): value is ExactNumber
  }
}

/**
 * Finds each number that may need it, and some that do not: all others take the faster way. A text that is only a
 * number has nothing before it, and is not found.
 */
const mayBeInexact = /[:[,\s](?:-?[\d.]{16}|-0|-?[\d.]+[eE][+-]?\d{3})/

export const holdsInexact = (text: string): boolean => mayBeInexact.test(text)

/** Throws if it is not JSON. */
export function parseExactly(text: string): unknown {
  const value: unknown = JSON.parse(text)
  return holdsInexact(text) ? new Reading(text).value() : value
}

/**
 * The same for a text in which names were replaced, with the spelling of every number kept: of members with one name,
 * each after the first gets a name of its own (`name 2`), so that none is lost. Throws if it is not JSON.
 */
export function parseDistinctly(text: string): unknown {
  JSON.parse(text)
  return new Reading(text, speltNumber, freeName).value()
}

/** Finds each number that JavaScript would write differently, and some that it would not. */
const mayBeRespelt = /[:[,\s](?:-?[\d.]{16}|-0|-?0\.0{6}|-?\d+\.\d*0[\s,\]}]|-?[\d.]+[eE])/

/** Whether a text may contain a number whose printed form differs from its spelling. */
export const holdsRespelt = (text: string): boolean => mayBeRespelt.test(text)

/** Like `parseExactly`, and keeps the spelling of every number: `1.0`, `1E5`. Throws if it is not JSON. */
export const parseSpelt = (text: string): unknown => speltOf(text, JSON.parse(text))

/** The same of a text that was parsed already, to `value`. */
export const speltOf = (text: string, value: unknown): unknown =>
  holdsRespelt(text) ? new Reading(text, speltNumber).value() : value

/** The object in a text; null if it is not JSON, or not an object. */
export function parseExactObject(text: string): Record<string, unknown> | null {
  try {
    const value = parseExactly(text)
    return isObject(value) ? value : null
  } catch {
    // The caller decides what a missing object means.
    return null
  }
}

/** `isRawJSON` is slow, and most objects have no such member. */
export const isExactNumber = (value: object): value is ExactNumber => 'rawJSON' in value && JSON.isRawJSON(value)

export const isNumber = (value: unknown): value is number | ExactNumber =>
  typeof value === 'object' && value !== null ? isExactNumber(value) : typeof value === 'number'

/** A value with every number as the nearest double, for calculations. */
export const withDoubles = (value: unknown): unknown => (holdsExact(value) ? JSON.parse(JSON.stringify(value)) : value)

/** A number of a setting if a double holds it well enough; null if the double would be another number. */
export function settingOf(value: unknown): number | null {
  if (!JSON.isRawJSON(value)) return typeof value === 'number' ? value : null
  const near = Number(value.rawJSON)
  return Number.isFinite(near) && (near === 0 || !Number.isInteger(near)) ? near : null
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !isExactNumber(value)

function holdsExact(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return isExactNumber(value) || Object.values(value).some(holdsExact)
}

const blank = 0x20
const quote = 0x22
const comma = 0x2c
const openBracket = 0x5b
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d

/** White space, a comma, a closing bracket, or the end of the text. */
const isEnd = (code: number): boolean =>
  code <= blank || code === comma || code === closeBracket || code === closeBrace || Number.isNaN(code)

/** Reads a text that is known to be JSON. */
class Reading {
  readonly #text: string
  readonly #numberOf: (source: string) => number | ExactNumber
  readonly #nameOf: (object: Readonly<Record<string, unknown>>, given: string) => string
  #at = 0

  constructor(text: string, readNumber = numberOf, readName = asGiven) {
    this.#text = text
    this.#numberOf = readNumber
    this.#nameOf = readName
  }

  value(): unknown {
    const first = this.#next()
    if (first === quote) return this.#string()
    if (first === openBrace) return this.#object()
    return first === openBracket ? this.#array() : this.#literal()
  }

  #object(): Record<string, unknown> {
    const object: Record<string, unknown> = {}
    this.#at += 1
    while (this.#next() !== closeBrace) {
      const name = this.#nameOf(object, this.#string())
      this.#next()
      this.#at += 1
      const value = this.value()
      // Assigned, this name would be the object's prototype.
      if (name === '__proto__') Object.defineProperty(object, name, { value, ...ownMember })
      else object[name] = value
      if (this.#next() === comma) this.#at += 1
    }
    this.#at += 1
    return object
  }

  #array(): unknown[] {
    const array: unknown[] = []
    this.#at += 1
    while (this.#next() !== closeBracket) {
      array.push(this.value())
      if (this.#next() === comma) this.#at += 1
    }
    this.#at += 1
    return array
  }

  #string(): string {
    const start = this.#at
    const end = endOfString(this.#text, start)
    this.#at = end
    const inner = this.#text.slice(start + 1, end - 1)
    return inner.includes('\\') ? JSON.parse(this.#text.slice(start, end)) : inner
  }

  #literal(): unknown {
    const start = this.#at
    while (!isEnd(this.#text.charCodeAt(this.#at))) this.#at += 1
    const source = this.#text.slice(start, this.#at)
    if (source === 'true') return true
    if (source === 'null') return null
    return source === 'false' ? false : this.#numberOf(source)
  }

  /** The next character that is no white space. */
  #next(): number {
    let code = this.#text.charCodeAt(this.#at)
    while (code <= blank) {
      this.#at += 1
      code = this.#text.charCodeAt(this.#at)
    }
    return code
  }
}

const asGiven = (_object: Readonly<Record<string, unknown>>, given: string): string => given

function freeName(object: Readonly<Record<string, unknown>>, given: string): string {
  let name = given
  for (let number = 2; Object.hasOwn(object, name); number++) name = `${given} ${number}`
  return name
}

const ownMember = { writable: true, enumerable: true, configurable: true } as const
const whole = /^-?[1-9]\d*$/

/** Within these limits, far inside a double's range, numbers of fifteen digits stay distinct. */
const leastOrdinary = 1e-300
const mostOrdinary = 1e300

function numberOf(source: string): number | ExactNumber {
  const value = Number(source)
  const magnitude = Math.abs(value)
  if (source.length < 16 && magnitude > leastOrdinary && magnitude < mostOrdinary) return value
  if (source === '0') return value
  if (magnitude === Number.POSITIVE_INFINITY || Object.is(value, -0)) return JSON.rawJSON(source)
  // Below 10^21 a whole number is written without an exponent.
  const sameText = whole.test(source) && magnitude < 1e21
  const isExact = sameText ? String(value) === source : decimalOf(source) === decimalOf(JSON.stringify(value))
  return isExact ? value : JSON.rawJSON(source)
}

function speltNumber(source: string): number | ExactNumber {
  const value = Number(source)
  return JSON.stringify(value) === source ? value : JSON.rawJSON(source)
}

/** One text for each number: `1.50`, `15e-1` and `1.5` give the same. */
function decimalOf(text: string): string {
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.')
  const digits = (whole + fraction).replace(/^0+/, '')
  const significant = digits.replace(/0+$/, '')
  const scale = significant === '' ? 0 : Number(exponent) - fraction.length + digits.length - significant.length
  return `${mantissa.startsWith('-') ? '-' : ''}${significant}e${scale}`
}

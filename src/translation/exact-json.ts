/**
 * JSON whose numbers come out as they went in. A tool's arguments are JSON text in some languages and an object in others;
 * a number that a double cannot hold (an id above 2^53, `-0`, `1e400`) would be another one after the way through a value.
 * Such a number is kept as its own text (`JSON.rawJSON`), which `JSON.stringify` writes again; all others are numbers.
 */
import { isObject, type JsonObject } from '../dialects/json-value.ts'

declare global {
  interface JSON {
    rawJSON(text: string): object
    isRawJSON(value: unknown): value is { readonly rawJSON: string }
  }
}

/** Finds each number that may need it, and some that do not: others are read in the usual, faster way. */
const mayBeInexact = /[:[,\s](?:-?[\d.]{16}|-0|-?[\d.]+[eE][+-]?\d{3})/

export const holdsInexact = (text: string): boolean => mayBeInexact.test(text)

/** Throws where it is no JSON. */
export const parseExactly = (text: string): unknown =>
  holdsInexact(text) ? JSON.parse(text, keepExact) : JSON.parse(text)

/** The object that a text holds; null where it is no JSON, or no object. */
export function parseExactObject(text: string): JsonObject | null {
  try {
    const value = parseExactly(text)
    return isObject(value) ? value : null
  } catch {
    // What it means that there is none is for whoever asked to say.
    return null
  }
}

/** A number of a setting, where digits past a double's say nothing more; null where it would be another number. */
export function settingOf(value: unknown): number | null {
  if (!JSON.isRawJSON(value)) return typeof value === 'number' ? value : null
  const near = Number(value.rawJSON)
  return Number.isFinite(near) && (near === 0 || !Number.isInteger(near)) ? near : null
}

function keepExact(_key: string, value: unknown, context?: { source?: string }): unknown {
  const source = context?.source
  if (typeof value !== 'number' || source === undefined) return value
  return decimalOf(source) === decimalOf(JSON.stringify(value)) ? value : JSON.rawJSON(source)
}

/** One text for each number: `1.50`, `15e-1` and `1.5` are alike. */
function decimalOf(text: string): string {
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.')
  const digits = (whole + fraction).replace(/^0+/, '')
  const significant = digits.replace(/0+$/, '')
  const scale = significant === '' ? 0 : Number(exponent) - fraction.length + digits.length - significant.length
  return `${mantissa.startsWith('-') ? '-' : ''}${significant}e${scale}`
}

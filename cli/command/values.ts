/** Values of flags, read from their text. Each function throws `usage` naming the flag, and never repeats the text. */
import { Failure } from '../../src/failure.ts'
import type { Terminal } from '../terminal/terminal.ts'

const secondsIn: Readonly<Record<string, number>> = { m: 60, h: 3600, d: 86_400 }

/** Reads `15m`, `12h` or `30d` as seconds. */
export function readDuration(flag: string, text: string): number {
  const [, count, unit = ''] = /^([1-9]\d{0,6})([mhd])$/.exec(text) ?? []
  const seconds = Number(count) * (secondsIn[unit] ?? Number.NaN)
  if (!Number.isNaN(seconds)) return seconds
  throw new Failure('usage', { message: `${flag} takes minutes, hours or days, for example 15m, 12h or 30d` })
}

/** Reads a whole number from `least`. */
export function readCount(flag: string, text: string, least: 0 | 1 = 1): number {
  const count = Number(text)
  if (/^(0|[1-9]\d*)$/.test(text) && Number.isSafeInteger(count) && count >= least) return count
  throw new Failure('usage', { message: `${flag} takes a whole number from ${least}` })
}

/** Reads an amount in dollars above nothing. */
export function readAmount(flag: string, text: string): number {
  const amount = Number(text)
  if (/^\d+(\.\d+)?$/.test(text) && amount > 0) return amount
  throw new Failure('usage', { message: `${flag} takes an amount in US dollars, for example 2.50` })
}

/** A number, with a fraction or without. Throws `usage`. */
export function readNumber(flag: string, text: string): number {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text)
  throw new Failure('usage', { message: `${flag} takes a number, for example 50 or 2.5` })
}

/** The values of a flag that was repeated. */
export const linesOf = (text: string | undefined): string[] | undefined => text?.split('\n')

/** The values of a flag that was repeated, or that has several values with commas between them. */
export function readList(flag: string, text: string): string[] {
  const values = text.split(/[\n,]/).map((value) => value.trim())
  if (!values.includes('')) return values
  throw new Failure('usage', { message: `${flag} takes values with one comma between two` })
}

export function readJson(flag: string, text: string, example: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Failure('usage', { message: `${flag} takes JSON, for example '${example}'` })
  }
}

/** Reads the variable that a flag names: other users can see a command line, so no secret is given on one. */
export function fromEnvironment(variable: string, { environment }: Pick<Terminal, 'environment'>): string {
  const value = environment[variable]
  if (value !== undefined && value !== '') return value
  throw new Failure('usage', { message: `The environment has no variable ${variable}` })
}

/** Reads `NAME=VARIABLE` lines as a record of the variables' values. */
export function pairsFromEnvironment(
  flag: string,
  text: string,
  terminal: Pick<Terminal, 'environment'>,
): Record<string, string> {
  const pairs = text.split('\n').map((line) => {
    const [, name, variable] = /^([^=]+)=([A-Za-z_][A-Za-z0-9_]*)$/.exec(line) ?? []
    if (name === undefined || variable === undefined) {
      throw new Failure('usage', { message: `${flag} takes a name and a variable, for example X-Key=MY_KEY` })
    }
    return [name, fromEnvironment(variable, terminal)] as const
  })
  return Object.fromEntries(pairs)
}

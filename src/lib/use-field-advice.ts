/**
 * What a field's error says: what to write, in plain words, instead of zod's own terms. A rule that gives a message of its
 * own keeps it. No message repeats the value, which may be a secret.
 */
import { z } from 'zod'
import { nearest } from './text/nearest.ts'

const types: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
  null: 'null',
  date: 'an instant',
}

const formats: Readonly<Record<string, string>> = {
  email: 'an e-mail address, such as ann@example.com',
  url: 'a URL, such as https://example.com',
  uuid: 'an id, such as 019a2b3c-4d5e-7f60-8a1b-2c3d4e5f6071',
  datetime: 'an instant, such as 2026-11-01T12:00:00Z',
  date: 'a date, such as 2026-11-01',
  json_string: 'JSON',
  base64: 'base64',
  ipv4: 'an IPv4 address',
  ipv6: 'an IPv6 address',
  cidrv4: 'an IPv4 range, such as 10.0.0.0/8',
  cidrv6: 'an IPv6 range',
}

/** Of a longer text only so many characters are compared with the names that are allowed. */
const longestName = 100

const counted = (count: number | bigint, noun: string): string =>
  `${count} ${Number(count) === 1 ? noun : noun === 'entry' ? 'entries' : `${noun}s`}`

/** The unit in which the size of what was written is measured; null: it is a number itself. */
const unitOf = (origin: string): string | null =>
  origin === 'string' ? 'character' : origin === 'number' || origin === 'int' || origin === 'bigint' ? null : 'entry'

type Bound<Name extends string> = Record<Name, number | bigint> & { origin: string; inclusive?: boolean | undefined }

function tooBig({ origin, maximum, inclusive }: Bound<'maximum'>): string {
  const unit = unitOf(origin)
  if (unit === null) return `Write a number ${inclusive === false ? 'below' : 'of at most'} ${maximum}`
  return unit === 'entry' ? `Give at most ${counted(maximum, unit)}` : `Write at most ${counted(maximum, unit)}`
}

function tooSmall({ origin, minimum, inclusive }: Bound<'minimum'>): string {
  const unit = unitOf(origin)
  if (unit === null) return `Write a number ${inclusive === false ? 'above' : 'of at least'} ${minimum}`
  if (unit === 'entry') return `Give at least ${counted(minimum, unit)}`
  return Number(minimum) === 1 ? 'Write a text: it must not be empty' : `Write at least ${counted(minimum, unit)}`
}

function oneOf(values: readonly string[], written: unknown): string {
  const meant = typeof written === 'string' && values.length > 1 ? nearest(written.slice(0, longestName), values) : null
  const hint = meant === null ? '' : `: did you mean ${meant}?`
  return `Write ${values.length === 1 ? '' : 'one of '}${values.join(', ')}${hint}`
}

/** The message for an issue; undefined leaves zod's own. */
const advice: z.core.$ZodErrorMap = (issue) => {
  switch (issue.code) {
    case 'too_big':
      return tooBig(issue)
    case 'too_small':
      return tooSmall(issue)
    case 'invalid_type':
      if (issue.input === undefined) return 'This is required'
      return `Write ${types[issue.expected] ?? issue.expected}`
    case 'invalid_value':
      return oneOf(issue.values.map(String), issue.input)
    case 'invalid_format': {
      const form = formats[issue.format]
      if (form !== undefined) return `Write ${form}`
      return issue.format === 'regex' ? `Write it in the form ${issue.pattern}` : undefined
    }
    case 'not_multiple_of':
      return `Write a multiple of ${issue.divisor}`
    case 'invalid_union':
      return 'It has none of the forms that are allowed here'
    default:
      return undefined
  }
}

/** Makes every schema of this process say its errors so. */
export function useFieldAdvice(): void {
  z.config({ customError: advice })
}

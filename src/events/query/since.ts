import { z } from 'zod'
import { Failure } from '../../failure.ts'

const unitMilliseconds: Readonly<Record<string, number>> = {
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
}
const relative = /^(\d{1,9})([mhdw])$/
/** An RFC 3339 instant. Its letters may be lower case (section 5.6). */
const instant = z
  .string()
  .toUpperCase()
  .pipe(z.iso.datetime({ offset: true }))

export const untilSchema = instant.meta({ format: 'date-time' })

/** The form of `since`: an RFC 3339 instant, or a whole number of minutes, hours, days or weeks before now. */
export const sinceSchema = z
  .string()
  .refine((text) => relative.test(text) || instant.safeParse(text).success, {
    message: 'Write an RFC 3339 timestamp, or a whole number followed by m, h, d or w',
  })
  .describe('RFC 3339, or a whole number followed by m, h, d or w; inclusive')

/** The instant that a `since` means at `now`, both in milliseconds since the epoch. */
export function sinceInstant(since: string, now: number): number {
  const [, count, unit = ''] = relative.exec(since) ?? []
  const length = unitMilliseconds[unit]
  if (count === undefined || length === undefined) return Date.parse(since.toUpperCase())
  return Math.max(0, now - Number(count) * length)
}

/** Throws `invalid_parameter` if a window ends before it begins. */
export function requireUntilAfter(since: number, until: string | undefined): void {
  if (until !== undefined && Date.parse(until) <= since) {
    throw new Failure('invalid_parameter', { param: 'until', message: 'until must be after since' })
  }
}

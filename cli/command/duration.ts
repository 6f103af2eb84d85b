import { Failure } from '../../src/failure.ts'

const secondsIn: Readonly<Record<string, number>> = { m: 60, h: 3600, d: 86_400 }

/** Reads `15m`, `12h` or `30d` as seconds. Throws `usage` naming the flag. */
export function readDuration(flag: string, text: string): number {
  const [, count, unit = ''] = /^([1-9]\d{0,6})([mhd])$/.exec(text) ?? []
  const seconds = Number(count) * (secondsIn[unit] ?? Number.NaN)
  if (Number.isNaN(seconds)) {
    throw new Failure('usage', { message: `${flag} takes minutes, hours or days, for example 15m, 12h or 30d` })
  }
  return seconds
}

/**
 * The forms in which a JSON reader prints a number: it turns `4.111111111111111e15` into 4111111111111111, as this
 * gateway's translation does. There are two readings: the exact decimal, and that of the nearest double.
 */

/** No double has more digits before its point, or needs more zeros after it. */
const mostNoughts = 400

const parts = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/

/** The readings that differ from the spelling itself; empty if it is not a number, or prints the same. */
export function printedForm(source: string): string[] {
  const [, sign, whole, fraction = '', exponent = '0'] = parts.exec(source) ?? []
  if (sign === undefined || whole === undefined) return []
  const readings = new Set<string>()
  for (const [digits, shift] of [[whole + fraction, Number(exponent) - fraction.length] as const, ofDouble(source)]) {
    const decimal = decimalOf(digits, shift)
    if (decimal !== null) readings.add(sign + decimal)
  }
  readings.delete(source)
  return [...readings]
}

/** Digits and the power of ten that multiplies them. */
function ofDouble(source: string): readonly [string, number] {
  const [mantissa = '', exponent = '0'] = String(Math.abs(Number(source))).split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  return [whole + fraction, Number(exponent) - fraction.length]
}

/** Null if no printer would write it like this: it is too long, or infinite. */
function decimalOf(digits: string, shift: number): string | null {
  const significant = digits.replace(/^0+/, '')
  // A pattern for the zeros at the end would read zeros within a long number again and again.
  let length = significant.length
  while (significant[length - 1] === '0') length -= 1
  const shown = significant.slice(0, length)
  const power = shift + significant.length - length
  if (shown === '') return '0'
  if (Math.abs(power) > mostNoughts || !/^\d+$/.test(shown)) return null
  if (power >= 0) return shown + '0'.repeat(power)
  const padded = shown.padStart(1 - power, '0')
  return `${padded.slice(0, power)}.${padded.slice(power)}`
}

/** Money: a decimal number of dollars outside, integer nano-dollars inside (handbook/reference/http.md). */
const nanoInUnit = 1_000_000_000

/** The largest amount whose nano-dollars are still exact integers in every part of the product. */
export const largestAmount = 9_000_000

/** Nano-dollars of an amount, rounded to the nearest one. */
export const toNano = (amount: number): number => Math.round(amount * nanoInUnit)

/** The decimal amount of nano-dollars. */
export const fromNano = (nano: number): number => nano / nanoInUnit

/** The same as text: every digit that it needs and never an exponent. */
export function decimalOf(nano: number): string {
  const digits = String(BigInt(Math.round(Math.abs(nano)))).padStart(10, '0')
  const text = `${digits.slice(0, -9)}.${digits.slice(-9)}`.replace(/\.?0+$/, '')
  return nano < 0 && text !== '0' ? `-${text}` : text
}

/** Whether an amount is a whole number of nano-dollars, as far as a number tells. */
export const isWholeNano = (amount: number): boolean =>
  Math.abs(fromNano(toNano(amount)) - amount) <= amount * Number.EPSILON

/** An amount for a person: in cents, and less than a cent in two digits. */
export const dollars = (amount: number): string =>
  `$${amount > 0 && amount < 0.01 ? amount.toPrecision(2) : amount.toFixed(2)}`

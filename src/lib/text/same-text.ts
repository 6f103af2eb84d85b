import { timingSafeEqual } from 'node:crypto'

/** Compares in constant time; lengths are no secret. */
export function sameText(given: string, expected: string): boolean {
  const [left, right] = [Buffer.from(given), Buffer.from(expected)]
  return left.length === right.length && timingSafeEqual(left, right)
}

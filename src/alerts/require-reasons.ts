/** Refuses reasons that nothing in this installation gives: an alert for them would never fire. */
import { givenReasons } from '../events/query/given-reasons.ts'
import { Failure } from '../failure.ts'
import { nearest } from '../lib/text/nearest.ts'
import type { Database } from '../store/open.ts'
import { globMatches } from '../tokens/governed-token.ts'

/** Throws `invalid_parameter` that names the reason. */
export async function requireReasons(state: Database, patterns: readonly string[]): Promise<void> {
  const reasons = await givenReasons(state)
  if (reasons === 'any') return
  const index = patterns.findIndex((pattern) => !reasons.some((reason) => globMatches(pattern, reason)))
  const pattern = patterns[index]
  if (pattern === undefined) return
  const near = nearest(pattern, reasons)
  const hint = near === null ? 'look one up under "reason_code" of an event' : `did you mean ${near}?`
  const what = pattern.includes('*')
    ? `No reason fits "${pattern}"`
    : `No policy and no part of Gatehouse gives "${pattern}"`
  throw new Failure('invalid_parameter', { param: `reasons.${index}`, message: `${what}: ${hint}` })
}

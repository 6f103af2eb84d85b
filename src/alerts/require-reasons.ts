/** Refuses reasons that nothing in this installation gives: an alert for them would never fire. */
import { eq } from 'drizzle-orm'
import { z } from 'zod'
import { Failure } from '../failure.ts'
import { nearest } from '../lib/text/nearest.ts'
import { knownReasons } from '../reason-words.ts'
import type { Database } from '../store/open.ts'
import { query } from '../store/query.ts'
import { policies } from '../store/schema/state/catalog.ts'
import { globMatches } from '../tokens/governed-token.ts'

const withReason = z.object({ reason_code: z.string() })

/** Throws `invalid_parameter` that names the reason. A webhook may answer with any reason, so with one all are accepted. */
export async function requireReasons(state: Database, patterns: readonly string[]): Promise<void> {
  const { kind, config, deleted } = policies
  const rows = await query(state).select({ kind, config }).from(policies).where(eq(deleted, 0))
  if (rows.some((policy) => policy.kind === 'webhook')) return
  const ofPolicies = rows.map((policy) => withReason.safeParse(JSON.parse(policy.config)).data?.reason_code ?? '')
  const reasons = [...knownReasons, ...ofPolicies]
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

/** How verdicts combine (policies/README.md): the strongest enforced verdict is the request's. */
import type { Verdict } from '../events/event.ts'

const byStrength: readonly Verdict[] = [
  'allow',
  'rewrite',
  'redact',
  'rate_limit',
  'pending',
  'approval_required',
  'escalate',
  'deny',
  'block',
  'error',
]

const strength: ReadonlyMap<Verdict, number> = new Map(byStrength.map((verdict, index) => [verdict, index]))

/** The stronger of two; `error`, which no policy returns, is above all. */
export const stronger = (one: Verdict, other: Verdict): Verdict =>
  other !== 'allow' && (strength.get(other) ?? 0) > (strength.get(one) ?? 0) ? other : one

/** After these no other policy is evaluated: the request or the answer goes no further. */
export const endsChain = (verdict: Verdict): boolean =>
  verdict === 'block' || verdict === 'deny' || verdict === 'escalate'

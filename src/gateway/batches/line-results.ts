/**
 * Adds what policies decided about a line to the exchange that stands for all lines: of each policy and stage the
 * strongest verdict, so that the record has as many decisions as one request may have.
 */
import { Failure } from '../../failure.ts'
import { stronger } from '../../policies/verdict.ts'
import type { Exchange } from '../exchange.ts'

const mostNotes = 20

export function addLineResults(whole: Exchange, { policyResults, verdict, notes }: Exchange): void {
  const known = whole.policyResults
  for (const result of policyResults) {
    const at = known.findIndex(({ policy_id: id, stage }) => id === result.policy_id && stage === result.stage)
    const former = known[at]
    if (former === undefined) known.push(result)
    else if (stronger(former.verdict, result.verdict) !== former.verdict) known[at] = result
  }
  whole.verdict = stronger(whole.verdict, verdict)
  for (const note of notes) if (!whole.notes.includes(note) && whole.notes.length < mostNotes) whole.notes.push(note)
}

/** A line cannot wait for a person, so nobody is asked. */
export function withoutWaiting(failure: Failure): Failure {
  const { code, verdictan } = failure
  if (code !== 'policy.escalated') return failure
  const message = 'A policy asks a person about this, and a line of a file cannot wait: send the request by itself'
  if (verdictan === null) return new Failure(code, { message })
  const { verdict, reason_code } = verdictan
  return new Failure(code, { message, verdictan: { verdict, reason_code } })
}

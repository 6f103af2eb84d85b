/**
 * Adds what policies decided about a line to the exchange that stands for all lines: of each policy and stage the
 * strongest verdict, so that the record has as many decisions as one request may have.
 */
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

/** Where a policy's rule finds something in a recorded text, with a little of what stands around it. */
import { passWhole } from '../../inspection/channel.ts'
import type { Finding } from '../../inspection/rule.ts'
import type { ActivePolicy } from '../chain.ts'
import { ruleOf } from '../redaction.ts'

export interface Excerpt {
  before: string
  found: string
  after: string
  /** What kind of thing it is: `EMAIL`. */
  label: string
}

const mostExcerpts = 5
/** UTF-16 units of the text on either side. */
const around = 60
/** Of what was found itself. */
const longestFound = 200

/** None for a policy that looks at requests as a whole, or that finds nothing in this text. */
export function excerptsOf(active: ActivePolicy, text: string): Excerpt[] {
  const { compiled } = active
  if (compiled instanceof Error || compiled.form !== 'text') return []
  const findings: Finding[] = []
  // Only told, not applied: then the whole text is read, also where the first finding would end it.
  const rule = ruleOf({ ...active, enforced: false }, compiled, null)
  passWhole([rule], { kind: 'content', place: 'prompt', role: null, text }, findings)
  return findings.slice(0, mostExcerpts).map(({ start, end, label }) => ({
    before: `${start > around ? '…' : ''}${text.slice(Math.max(0, start - around), start)}`,
    found: text.slice(start, Math.min(end, start + longestFound)),
    after: `${text.slice(end, end + around)}${text.length > end + around ? '…' : ''}`,
    label,
  }))
}

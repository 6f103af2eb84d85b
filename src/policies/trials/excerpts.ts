/** Where a policy's rule finds something in a recorded text, with a little of what stands around it. */
import { passWhole } from '../../inspection/channel.ts'
import type { Finding } from '../../inspection/rule.ts'
import type { ActivePolicy } from '../chain.ts'
import type { HeldPart } from '../conditions/explain.ts'
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
  return findings.slice(0, mostExcerpts).map(({ start, end, label }) => excerptAt(text, { start, end, label }))
}

export const excerptAt = (
  text: string,
  { start, end, label }: { start: number; end: number; label: string },
): Excerpt => ({
  before: `${start > around ? '…' : ''}${text.slice(Math.max(0, start - around), start)}`,
  found: text.slice(start, Math.min(end, start + longestFound)),
  after: `${text.slice(end, end + around)}${text.length > end + around ? '…' : ''}`,
  label,
})

/** A part of the policy's condition that held, as the API tells it. */
export interface HeldCondition {
  part: string
  /** Each as JSON, cut where it is long. */
  values: { name: string; value: string }[]
}

const longestValue = 200

export const toldParts = (held: readonly HeldPart[]): HeldCondition[] =>
  held.map(({ part, values }) => ({
    part,
    values: values.map(({ name, value }) => ({ name, value: toldValue(value) })),
  }))

function toldValue(value: unknown): string {
  // Whole numbers of CEL are BigInts, which JSON does not know.
  const text = JSON.stringify(value, (_name, one: unknown) => (typeof one === 'bigint' ? Number(one) : one)) ?? ''
  return text.length > longestValue ? `${text.slice(0, longestValue)}…` : text
}

/** Where the texts of a request have what its condition looked for. */
export const excerptsOfParts = (held: readonly HeldPart[]): Excerpt[] =>
  held
    .flatMap(({ found }) => (found === null ? [] : [excerptAt(found.text, { ...found, label: 'CONDITION' })]))
    .slice(0, mostExcerpts)

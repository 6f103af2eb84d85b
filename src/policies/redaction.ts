/**
 * What takes the place of what a text policy found, and how it is put back. Where a policy asks for it, what was redacted
 * in the request is kept for the time of the exchange under a numbered placeholder (`[EMAIL_1]`, the same for the same
 * value), and put back wherever the answer names that.
 */
import type { InspectionRule } from '../inspection/rule.ts'
import { WorkBudget } from '../inspection/work-budget.ts'
import type { ActivePolicy } from './chain.ts'
import type { TextPolicy } from './kinds/kind.ts'
import { literalMatcher } from './kinds/literal-matcher.ts'

const numbered = /\[[^[\]]{1,200}_\d{1,9}\]/g

interface Kept {
  /** By placeholder. */
  readonly values: Map<string, string>
  /** Placeholders by label and value. */
  readonly known: Map<string, string>
  /** How many of each label there are. */
  readonly counts: Map<string, number>
  /** What the request itself names so, in its body or anything within: it stands for nothing of ours. */
  readonly taken: ReadonlySet<string>
}

/** What was taken out of one exchange's request. Never leaves the process. */
export class Placeholders {
  readonly #body: unknown
  /** Of most requests nothing is kept. */
  #kept: Kept | null = null

  constructor(body: unknown) {
    this.#body = body
  }

  get size(): number {
    return this.#kept?.values.size ?? 0
  }

  /** The placeholder of a value, the same each time. */
  keep(label: string, value: string): string {
    this.#kept ??= {
      values: new Map(),
      known: new Map(),
      counts: new Map(),
      taken: new Set(JSON.stringify(this.#body)?.match(numbered)),
    }
    const { values, known, counts, taken } = this.#kept
    const key = `${label}\n${value}`
    const present = known.get(key)
    if (present !== undefined) return present
    let count = counts.get(label) ?? 0
    let placeholder: string
    do placeholder = `[${label}_${++count}]`
    while (taken.has(placeholder))
    counts.set(label, count)
    known.set(key, placeholder)
    values.set(placeholder, value)
    return placeholder
  }

  /** The rule that puts the values back into an answer; it is no policy's, and nothing records it. */
  restoring(): InspectionRule {
    const values = this.#kept?.values ?? new Map<string, string>()
    return {
      policyId: '',
      kind: 'restore',
      reasonCode: 'policy.restored',
      matcher: literalMatcher([...values.keys()]),
      action: 'rewrite',
      enforced: true,
      replacement: (_found, text) => values.get(text) ?? text,
    }
  }
}

/** A text policy of a chain as the inspection of texts takes it. */
export const ruleOf = (
  { id, kind, enforced }: ActivePolicy,
  policy: TextPolicy,
  placeholders: Placeholders | null,
): InspectionRule => ({
  policyId: id,
  kind,
  enforced,
  reasonCode: policy.reasonCode,
  matcher: policy.matcher,
  action: policy.action,
  work: new WorkBudget(),
  ...(policy.reads === undefined ? {} : { reads: policy.reads }),
  replacement: ({ label }, text) => {
    if (policy.action === 'rewrite') return policy.replacement?.(text) ?? text
    return policy.restore && placeholders !== null ? placeholders.keep(label, text) : `[${label}]`
  },
})

/**
 * The replacement of what a text policy found, and how it is restored. If a policy asks for it, a value redacted in
 * the request is kept during the exchange under a numbered placeholder (`[EMAIL_1]`, the same for the same value),
 * and restored wherever the answer contains the placeholder.
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
  /** Placeholder texts that the request itself contains: they are not used for values. */
  readonly taken: ReadonlySet<string>
}

/** The values removed from one exchange's request. Never leaves the process. */
export class Placeholders {
  readonly #body: unknown
  /** For most requests nothing is kept. */
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

  /** The rule that restores the values in an answer; it belongs to no policy, and nothing records it. */
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

/** A text policy of a chain in the form that the inspection of texts takes. */
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

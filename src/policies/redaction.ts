/**
 * What takes the place of what a text policy found, and how it is put back. Where a policy asks for it, what was redacted
 * in the request is kept for the time of the exchange under a numbered placeholder (`[EMAIL_1]`, the same for the same
 * value), and put back wherever the answer names that.
 */
import type { InspectionRule } from '../inspection/rule.ts'
import { Work } from '../inspection/work.ts'
import type { ActivePolicy } from './chain.ts'
import type { TextPolicy } from './kinds/kind.ts'
import { literalMatcher } from './kinds/literal-matcher.ts'

const numbered = /\[[^[\]]{1,200}_\d{1,9}\]/g

/** What was taken out of one exchange's request. Never leaves the process. */
export class Placeholders {
  readonly #values = new Map<string, string>()
  readonly #known = new Map<string, string>()
  readonly #counts = new Map<string, number>()
  readonly #body: unknown
  #taken: ReadonlySet<string> | null = null

  /** What the request itself names so, in its body or anything within, stands for nothing of ours. */
  constructor(body: unknown) {
    this.#body = body
  }

  get size(): number {
    return this.#values.size
  }

  /** The placeholder of a value, the same each time. */
  keep(label: string, value: string): string {
    const key = `${label}\n${value}`
    const known = this.#known.get(key)
    if (known !== undefined) return known
    this.#taken ??= new Set(JSON.stringify(this.#body)?.match(numbered))
    let count = this.#counts.get(label) ?? 0
    let placeholder: string
    do placeholder = `[${label}_${++count}]`
    while (this.#taken.has(placeholder))
    this.#counts.set(label, count)
    this.#known.set(key, placeholder)
    this.#values.set(placeholder, value)
    return placeholder
  }

  /** The rule that puts the values back into an answer; it is no policy's, and nothing records it. */
  restoring(): InspectionRule {
    return {
      policyId: '',
      kind: 'restore',
      reasonCode: 'policy.restored',
      matcher: literalMatcher([...this.#values.keys()]),
      action: 'rewrite',
      enforced: true,
      replacement: (_found, text) => this.#values.get(text) ?? text,
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
  work: new Work(),
  ...(policy.reads === undefined ? {} : { reads: policy.reads }),
  replacement: ({ label }, text) => {
    if (policy.action === 'rewrite') return policy.replacement?.(text) ?? text
    return policy.restore && placeholders !== null ? placeholders.keep(label, text) : `[${label}]`
  },
})

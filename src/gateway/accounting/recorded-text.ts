/**
 * A caller's own words as events, escalations and spans keep them: without secrets, and without what a policy of the
 * request would block or redact, whether or not the chain came as far as that policy, or its `when` held. A policy before
 * it may have ended the request.
 *
 * The model of a request to a provider is no such word: policies read it by its name, not as text, and spend is booked
 * under it. Only secrets are masked there.
 */
import { LRUCache } from 'lru-cache'
import { Channel } from '../../inspection/channel.ts'
import type { InspectionRule } from '../../inspection/rule.ts'
import type { ActivePolicy, PolicyChain, PolicyResult } from '../../policies/chain.ts'
import { ruleOf } from '../../policies/redaction.ts'
import type { Exchange } from '../exchange.ts'
import { longestRemembered, withoutSecrets } from './redaction.ts'

type Governed = Pick<Exchange, 'chain'>

interface Redaction {
  readonly rules: readonly InspectionRule[]
  /** Sessions and names come again and again, and each event of an exchange asks anew. */
  readonly known: LRUCache<string, string>
}

const redactions = new WeakMap<PolicyChain, Redaction>()
const remembered = 100

/** The text as a record keeps it; the label of what is taken out stands in its place. */
export function recordedText({ chain }: Governed, text: string): string {
  const masked = withoutSecrets(text)
  if (chain === null || chain.size === 0 || masked === '') return masked
  const { rules, known } = redactionOf(chain)
  if (rules.length === 0) return masked
  const present = known.get(masked)
  if (present !== undefined) return present
  const channel = new Channel(rules, { kind: 'content', role: null, place: 'record' }, [])
  const redacted = channel.push(masked) + channel.end()
  if (masked.length <= longestRemembered) known.set(masked, redacted)
  return redacted
}

/** The same of a text that may be missing. */
export const recordedOrNull = (exchange: Governed, text: string | null | undefined): string | null =>
  text === null || text === undefined ? null : recordedText(exchange, text)

/** What a policy said. It may name what the caller chose: tools, members. Its own words for what it found stay. */
export const recordedResult = (exchange: Governed, result: PolicyResult): PolicyResult =>
  result.targets.length === 0 ? result : { ...result, targets: recordedTargets(exchange, result) }

/** Each of the results as a record keeps it. */
export function recordedResults(exchange: Governed, results: readonly PolicyResult[]): PolicyResult[] {
  const recorded: PolicyResult[] = []
  for (const result of results) recorded.push(recordedResult(exchange, result))
  return recorded
}

function recordedTargets(exchange: Governed, result: PolicyResult): string[] {
  const named = isOfTextPolicy(exchange, result)
  return result.targets.map((target) => {
    const end = named ? target.lastIndexOf(': ') : -1
    return end < 0 ? recordedText(exchange, target) : recordedText(exchange, target.slice(0, end)) + target.slice(end)
  })
}

const isOfTextPolicy = ({ chain }: Governed, { policy_id, stage }: PolicyResult): boolean =>
  chain?.at(stage).some(({ id, compiled }) => id === policy_id && isText(compiled)) === true

const isText = (compiled: ActivePolicy['compiled']): boolean => !(compiled instanceof Error) && compiled.form === 'text'

function redactionOf(chain: PolicyChain): Redaction {
  let redaction = redactions.get(chain)
  if (redaction === undefined) {
    redaction = { rules: redactingRules(chain.at('pre_request')), known: new LRUCache({ max: remembered }) }
    redactions.set(chain, redaction)
  }
  return redaction
}

/** The policies that take out what they find, as rules that write its label; what a policy would put there is no part of a record. */
export const redactingRules = (policies: readonly ActivePolicy[]): InspectionRule[] =>
  policies.flatMap((policy) => {
    const { compiled, enforced } = policy
    if (!enforced || compiled instanceof Error || compiled.form !== 'text') return []
    if (compiled.action !== 'block' && compiled.action !== 'redact') return []
    return [{ ...ruleOf(policy, compiled, null), action: 'redact', replacement: ({ label }) => `[${label}]` }]
  })

/**
 * Prepares text of the caller for events, escalations and spans: without secrets, and without what a policy of the
 * chain would block or redact. The policy need not have run, because an earlier policy may have ended the request.
 *
 * The model of a provider request is only masked for secrets: policies read it as a name, not as text, and spend is
 * booked under it.
 */
import { LRUCache } from 'lru-cache'
import { Channel } from '../../inspection/channel.ts'
import type { InspectionRule } from '../../inspection/rule.ts'
import type { ActivePolicy, PolicyChain, PolicyResult } from '../../policies/chain.ts'
import { ruleOf } from '../../policies/redaction.ts'
import type { Exchange } from '../exchange.ts'
import { longestCached, maskSecrets } from './redaction.ts'

type Governed = Pick<Exchange, 'chain'>

interface Redaction {
  readonly rules: readonly InspectionRule[]
  /** Sessions and names repeat, and each event of an exchange asks again. */
  readonly cache: LRUCache<string, string>
}

const redactions = new WeakMap<PolicyChain, Redaction>()
const remembered = 100

/** The text for the record; each removed part is replaced by its label. */
export function recordedText({ chain }: Governed, text: string): string {
  const masked = maskSecrets(text)
  if (chain === null || chain.size === 0 || masked === '') return masked
  const { rules, cache: known } = redactionOf(chain)
  if (rules.length === 0) return masked
  const present = known.get(masked)
  if (present !== undefined) return present
  const channel = new Channel(rules, { kind: 'content', role: null, place: 'record' }, [])
  const redacted = channel.push(masked) + channel.end()
  if (masked.length <= longestCached) known.set(masked, redacted)
  return redacted
}

/** As `recordedText`, for a text that may be missing. */
export const recordedOrNull = (exchange: Governed, text: string | null | undefined): string | null =>
  text === null || text === undefined ? null : recordedText(exchange, text)

/**
 * The result of a policy for the record. It may name tools and members that the caller chose. The labels of findings
 * stay.
 */
export const recordedResult = (exchange: Governed, result: PolicyResult): PolicyResult =>
  result.targets.length === 0 ? result : { ...result, targets: recordedTargets(exchange, result) }

/** All results for the record. */
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
    redaction = { rules: redactingRules(chain.at('pre_request')), cache: new LRUCache({ max: remembered }) }
    redactions.set(chain, redaction)
  }
  return redaction
}

/**
 * The policies that redact, as rules that write a label in place of what they find. The record never holds a policy's
 * own replacement.
 */
export const redactingRules = (policies: readonly ActivePolicy[]): InspectionRule[] =>
  policies.flatMap((policy) => {
    const { compiled, enforced } = policy
    if (!enforced || compiled instanceof Error || compiled.form !== 'text') return []
    if (compiled.action !== 'block' && compiled.action !== 'redact') return []
    return [{ ...ruleOf(policy, compiled, null), action: 'redact', replacement: ({ label }) => `[${label}]` }]
  })

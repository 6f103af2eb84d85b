/**
 * Makes the request text for the event when `capture_prompt_bytes` is set, or the policy that escalates the request
 * shows it to the reviewer (`capture_escalated`), which is enough for 2 KiB (events/README.md): the text after the
 * policies, without personal data and secrets of every kind, whatever policies there are.
 *
 * 1. Everything that a text policy of the chain would block or redact is removed too, even if the policy did not run or
 *    its `when` did not hold, because an earlier policy may have ended the request. Tool arguments are read decoded.
 * 2. No text is kept when this cannot be ensured: a request refused before it had a chain, a policy that blocked
 *    without naming the words, or a webhook policy of the chain that was not asked.
 * 3. The text is as short as the setting says, and only as much is read as that needs. A possible match at the cut is
 *    left out.
 */

import { mostCapturedBytes } from '../../config.ts'
import { Channel } from '../../inspection/channel.ts'
import { maxLiveUnits } from '../../inspection/detectors/detector.ts'
import { personalDataDetector, personalDataTypes } from '../../inspection/detectors/personal-data/personal-data.ts'
import { secretDetector } from '../../inspection/detectors/secrets/secret-patterns.ts'
import { matcherOf } from '../../inspection/detectors/text-matcher.ts'
import type { InspectionRule } from '../../inspection/rule.ts'
import type { PolicyStage } from '../../languages/families.ts'
import type { TextSlot } from '../../languages/reading/texts/text-slot.ts'
import type { ActivePolicy } from '../../policies/chain.ts'
import { everyStage } from '../../policies/kinds/kind.ts'
import { brokenReason } from '../../policies/stages/run-stage.ts'
import type { Gateway } from '../context.ts'
import type { Exchange } from '../exchange.ts'
import { redactingRules } from './recorded-text.ts'

const rule = (kind: string, matcher: InspectionRule['matcher']): InspectionRule => ({
  policyId: '',
  kind,
  reasonCode: 'ok',
  matcher,
  action: 'redact',
  enforced: true,
  replacement: ({ label }) => `[${label}]`,
})

let rules: readonly InspectionRule[] | null = null

/** Compiled for the first captured request. */
function redactions(): readonly InspectionRule[] {
  rules ??= [
    rule('secrets', matcherOf(secretDetector())),
    rule('pii', matcherOf(personalDataDetector(personalDataTypes))),
  ]
  return rules
}

/** Returns null when no text is kept or no text was read. */
export function capturePrompt(exchange: Exchange, { settings, log }: Pick<Gateway, 'settings' | 'log'>): string | null {
  const { dialect, parsed, chain, escalation, id, requestId } = exchange
  const limit = Math.max(settings.capture_prompt_bytes, escalation?.captures === true ? mostCapturedBytes : 0)
  if (limit === 0 || parsed === null || chain === null) return null
  try {
    const policies = chain.at('pre_request')
    return isUnsafeToRecord(exchange, policies)
      ? null
      : redactedText(dialect.requestText(parsed), redactingRules(policies), limit)
  } catch (error) {
    // The outcome is recorded with or without its text.
    log.error(
      { request_id: requestId, exchange_id: id, error: String(error) },
      'The request text could not be captured',
    )
    return null
  }
}

/** Of the arguments of each tool that waits. */
const argumentBytes = 512
/** Of an answer that waits: beside the request's text as much as its event has room for. */
const answerBytes = 1024

/**
 * The arguments of each tool as JSON, without what a capture of text leaves out; null where none may be kept. `stages` are
 * those whose policies read such arguments.
 */
export function captureArguments(
  exchange: Exchange,
  slots: readonly TextSlot[],
  stages: readonly PolicyStage[],
): string[] | null {
  const { chain } = exchange
  if (chain === null || stages.some((stage) => isUnsafeToRecord(exchange, chain.at(stage), stage))) return null
  const rules = [...stages.flatMap((stage) => redactingRules(chain.at(stage))), ...redactions()]
  try {
    return slots.map(({ role, text, kind }) => {
      const cut = text.length > argumentBytes + maxLiveUnits
      const channel = new Channel(rules, { kind, role, place: 'prompt' }, [])
      const said = channel.push(text.slice(0, argumentBytes + maxLiveUnits)) + (cut ? '' : channel.end())
      return truncateToBytes(said, argumentBytes)
    })
  } catch {
    // The request waits for a person with or without them.
    return null
  }
}

/** The text of an answer that waits, by the same rules; null where none may be kept or it has none. */
export function captureAnswer(exchange: Exchange, slots: readonly TextSlot[]): string | null {
  const { chain } = exchange
  if (chain === null || everyStage.some((stage) => isUnsafeToRecord(exchange, chain.at(stage), stage))) return null
  const texts = slots.filter(({ kind }) => kind !== 'tool_arguments')
  const rules = everyStage.flatMap((stage) => redactingRules(chain.at(stage)))
  try {
    return redactedText(texts, rules, answerBytes)
  } catch {
    // The answer waits for a person with or without it.
    return null
  }
}

/** Whether only a policy that did not run, or does not name its words, could remove its findings. */
function isUnsafeToRecord(
  { policyResults, opened }: Exchange,
  policies: readonly ActivePolicy[],
  stage: PolicyStage = 'pre_request',
): boolean {
  return policies.some(({ id, kind, enforced, compiled }) => {
    if (!enforced || (!(compiled instanceof Error) && compiled.form === 'text')) return false
    const result = policyResults.find((each) => each.policy_id === id && each.stage === stage)
    // A request that was sent has passed every policy that applies to it.
    if (result === undefined) return kind === 'webhook' && (stage !== 'pre_request' || !opened)
    return result.verdict === 'block' || result.reason_code === brokenReason
  })
}

function redactedText(slots: readonly TextSlot[], rules: readonly InspectionRule[], limit: number): string | null {
  const texts = slots.filter(({ kind, text }) => kind !== 'name' && text !== '')
  if (texts.length === 0) return null
  const ofArguments = [...rules, ...redactions()]
  let whole = ''
  let cut = false
  for (const { role, text, kind } of texts) {
    const room = limit + maxLiveUnits - whole.length
    const channel = new Channel(kind === 'tool_arguments' ? ofArguments : rules, { kind, role, place: 'prompt' }, [])
    cut = text.length > room
    const said = channel.push(text.slice(0, room)) + (cut ? '' : channel.end())
    whole += `${whole === '' ? '' : '\n'}${role === null ? '' : `${role}: `}${said}`
    cut ||= whole.length > limit + maxLiveUnits
    if (cut) break
  }
  // One channel reads all texts, because a key may continue in the next text.
  const channel = new Channel(redactions(), { kind: 'content', role: null, place: 'prompt' }, [])
  return truncateToBytes(channel.push(whole) + (cut ? '' : channel.end()), limit)
}

/** The longest prefix of whole characters within this many bytes of UTF-8. */
function truncateToBytes(text: string, limit: number): string {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(limit))
  return text.slice(0, read)
}

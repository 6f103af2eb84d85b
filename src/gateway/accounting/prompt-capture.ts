/**
 * The text of a request as its record keeps it, where `capture_prompt_bytes` asks for that (events/README.md): what the
 * policies left of it, after personal data and secrets of every kind were taken out, whatever policies there are.
 *
 * 1. What any text policy of the chain would block or redact is taken out too, whether or not the chain came as far as
 *    it, or its `when` held: a policy before it may have ended the request. Tool arguments are read as what they say.
 * 2. Nothing is kept where that cannot be had: of a request that was refused before it had a chain, of one that a policy
 *    blocked that does not say by which words, and where a webhook of the chain was not asked.
 * 3. It is as short as the setting says, and no longer text is read than that takes. Where the text is cut, what could
 *    still have become a find at the cut is left out with the rest.
 */

import { Channel } from '../../inspection/channel.ts'
import { maxLiveUnits } from '../../inspection/detectors/detector.ts'
import { personalDataDetector, personalDataTypes } from '../../inspection/detectors/personal-data/personal-data.ts'
import { secretDetector } from '../../inspection/detectors/secrets/secret-patterns.ts'
import { matcherOf } from '../../inspection/detectors/text-matcher.ts'
import type { InspectionRule } from '../../inspection/rule.ts'
import type { TextSlot } from '../../languages/reading/texts/text-slot.ts'
import type { ActivePolicy } from '../../policies/chain.ts'
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

/** Compiled when the first request is captured. */
function redactions(): readonly InspectionRule[] {
  rules ??= [
    rule('secrets', matcherOf(secretDetector())),
    rule('pii', matcherOf(personalDataDetector(personalDataTypes))),
  ]
  return rules
}

/** Null where nothing is kept, or nothing was read. */
export function capturePrompt(exchange: Exchange, { settings, log }: Pick<Gateway, 'settings' | 'log'>): string | null {
  const { dialect, parsed, chain, id, requestId } = exchange
  const limit = settings.capture_prompt_bytes
  if (limit === 0 || parsed === null || chain === null) return null
  try {
    const policies = chain.at('pre_request')
    return unsayable(exchange, policies)
      ? null
      : redactedText(dialect.requestText(parsed), redactingRules(policies), limit)
  } catch (error) {
    // What becomes of the request must be recorded, with its text or without.
    log.error({ request_id: requestId, exchange_id: id, error: String(error) }, 'A text could not be captured')
    return null
  }
}

/** Whether a policy found, or would have found, what only it could take out. */
function unsayable({ policyResults, opened }: Exchange, policies: readonly ActivePolicy[]): boolean {
  return policies.some(({ id, kind, enforced, compiled }) => {
    if (!enforced || (!(compiled instanceof Error) && compiled.form === 'text')) return false
    const result = policyResults.find((each) => each.policy_id === id && each.stage === 'pre_request')
    // What was sent has passed all that were for it.
    if (result === undefined) return kind === 'webhook' && !opened
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
  // Over all of it, because a key may go on in the next text.
  const channel = new Channel(redactions(), { kind: 'content', role: null, place: 'prompt' }, [])
  return withinBytes(channel.push(whole) + (cut ? '' : channel.end()), limit)
}

/** As much of a text as so many bytes of UTF-8 hold, whole characters only. */
function withinBytes(text: string, limit: number): string {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(limit))
  return text.slice(0, read)
}

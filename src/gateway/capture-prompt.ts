/**
 * The text of a request as its record keeps it, where `capture_prompt_bytes` asks for that (contract section 9): what the
 * policies left of it, after personal data and secrets of every kind were taken out, whatever policies there are.
 *
 * It is as short as the setting says, and no longer text is read than that takes. Where the text is cut, what could still
 * have become a find at the cut is left out with the rest.
 */
import type { Dialect } from '../dialects/dialect.ts'
import { Channel } from '../inspection/channel.ts'
import { maxLiveUnits } from '../inspection/detector.ts'
import { matcherOf } from '../inspection/follower.ts'
import { patternDetector } from '../inspection/pattern-detector.ts'
import { personalData } from '../inspection/personal-data.ts'
import type { InspectionRule } from '../inspection/rule.ts'
import { secretDetector } from '../inspection/secret-patterns.ts'
import type { Exchange, Gateway } from './exchange.ts'

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
  const options = { streaming: true, paramOf: () => 'config' }
  rules ??= [
    rule('secrets', matcherOf(secretDetector())),
    rule('pii', matcherOf(patternDetector(Object.values(personalData).flat(), options))),
  ]
  return rules
}

/** Null where nothing is kept, or nothing was read. */
export function capturePrompt(exchange: Exchange, { settings, log }: Pick<Gateway, 'settings' | 'log'>): string | null {
  const { dialect, parsed, id, requestId } = exchange
  const limit = settings.capture_prompt_bytes
  if (limit === 0 || parsed === null) return null
  try {
    return redactedText(dialect, parsed, limit)
  } catch (error) {
    // What becomes of the request must be recorded, with its text or without.
    log.error({ request_id: requestId, exchange_id: id, error: String(error) }, 'A text could not be captured')
    return null
  }
}

function redactedText(dialect: Dialect, parsed: Record<string, unknown>, limit: number): string | null {
  const texts = dialect.requestText(parsed).filter(({ kind, text }) => kind !== 'name' && text !== '')
  if (texts.length === 0) return null
  let whole = ''
  for (const { role, text } of texts) {
    whole += `${whole === '' ? '' : '\n'}${role === null ? '' : `${role}: `}${text}`
    if (whole.length > limit + maxLiveUnits) break
  }
  const read = whole.slice(0, limit + maxLiveUnits)
  const channel = new Channel(redactions(), { kind: 'content', role: null, place: 'prompt' }, [])
  const redacted = channel.push(read) + (read.length < whole.length ? '' : channel.end())
  return withinBytes(redacted, limit)
}

/** As much of a text as so many bytes of UTF-8 hold, whole characters only. */
function withinBytes(text: string, limit: number): string {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(limit))
  return text.slice(0, read)
}

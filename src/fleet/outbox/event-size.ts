/**
 * Trims an event to the space that was reserved for it. First it drops what readers need least: large details, then
 * all details, free text, and last the ends of long strings. Who, what, when and the verdict always stay.
 */
import type { Event } from '../../events/event.ts'
import { wellFormedJson } from '../../lib/json/well-formed-json.ts'

const smallDetail = 200
const shortString = 160

/**
 * The event's JSON in at most `limit` bytes of UTF-8 (at least 4096). `details.trimmed` says that something was
 * dropped. Text from callers and providers is made well-formed here, since all events of a gateway pass here.
 */
export function eventJson(event: Event, limit: number): string {
  const whole = wellFormedJson(event)
  if (fits(whole, limit)) return whole
  const details = event.details ?? {}
  const small = Object.fromEntries(
    Object.entries(details).filter(([, value]) => (JSON.stringify(value) ?? '').length <= smallDetail),
  )
  const { metadata: _metadata, prompt_redacted: _prompt, ...bare } = event
  const steps: Event[] = [
    { ...event, details: { ...small, trimmed: true } },
    { ...event, details: { trimmed: true } },
    { ...bare, details: { trimmed: true } },
  ]
  for (const step of steps) {
    const json = wellFormedJson(step)
    if (fits(json, limit)) return json
  }
  return JSON.stringify({ ...bare, details: { trimmed: true } }, (_key, value) =>
    typeof value === 'string' ? value.slice(0, shortString).toWellFormed() : value,
  )
}

const fits = (json: string, limit: number): boolean => json.length * 3 <= limit || Buffer.byteLength(json) <= limit

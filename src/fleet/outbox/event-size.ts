/**
 * Trims a record of the event log to the space that is set aside for it. First it drops what readers need least: large
 * details of the outcome, then those of its attempts and decisions, then the end of the request's text, all details, the
 * rest of free text, and last the ends of long strings. Ids, verdicts, reasons, settlements, who, when, and what the
 * control plane queues for a person always stay.
 */
import type { InnerEvent, LogRecord } from '../../events/log/record.ts'
import { wellFormedJson } from '../../lib/json/well-formed-json.ts'

/** The most bytes of a record without attempts and decisions. */
const aloneBytes = 4096
/** What an attempt or a decision adds. It needs less than half, so most keep their details. */
const innerBytes = 512
/** The most bytes of any record's JSON. More attempts and decisions than usual share it. */
export const mostEventBytes = 16 * 1024
const smallDetail = 200
const shortString = 160

/** The most bytes of a record's JSON with so many attempts and decisions. */
export const eventBytes = (innerEvents: number): number =>
  Math.min(mostEventBytes, aloneBytes + innerBytes * innerEvents)

/**
 * The record's JSON within `eventBytes`. `details.trimmed` says that something was dropped. Text from callers and
 * providers is made well-formed here, since all records of a gateway pass here.
 */
export const eventJson = (record: LogRecord): string =>
  fittedJson(wellFormedJson(record), (record.attempts?.length ?? 0) + (record.decisions?.length ?? 0))

/** As `eventJson`, for a record that is well-formed JSON already, with so many attempts and decisions. */
export function fittedJson(whole: string, innerEvents: number): string {
  const limit = eventBytes(innerEvents)
  return fits(whole, limit) ? whole : trimmed(JSON.parse(whole), limit)
}

function trimmed(record: LogRecord, limit: number): string {
  const { metadata: _metadata, prompt_redacted: _prompt, ...bare } = record
  const steps: LogRecord[] = [
    withDetails(record, smallDetails, (details) => details),
    withDetails(record, smallDetails, smallDetails),
    ...shorterPrompts(withDetails(record, smallDetails, smallDetails)),
    withDetails(record, noDetails, smallDetails),
    withDetails(bare, noDetails, smallDetails),
    withDetails(bare, noDetails, noDetails),
  ]
  for (const step of steps) {
    const json = wellFormedJson(step)
    if (fits(json, limit)) return json
  }
  return shortest(withDetails(bare, noDetails, noDetails), limit)
}

/** The record with three quarters, half and a quarter of its text, the longest first. */
function shorterPrompts(record: LogRecord): LogRecord[] {
  const { prompt_redacted: text } = record
  if (text === undefined) return []
  return [0.75, 0.5, 0.25].map((share) => ({
    ...record,
    prompt_redacted: text.slice(0, Math.floor(text.length * share)).toWellFormed(),
  }))
}

/** Cuts strings, and if even that is too long, leaves out the last decisions and attempts and says how many. */
function shortest(record: LogRecord, limit: number): string {
  const { attempts = [], decisions = [] } = record
  for (let keeps = attempts.length + decisions.length; ; keeps = Math.floor(keeps / 2)) {
    const dropped = attempts.length + decisions.length - keeps
    const kept: LogRecord = { ...record, ...(dropped > 0 && { details: { trimmed: true, left_out: dropped } }) }
    if (attempts.length > 0) kept.attempts = attempts.slice(0, keeps)
    if (decisions.length > 0) kept.decisions = decisions.slice(0, Math.max(0, keeps - attempts.length))
    const json = JSON.stringify(kept, (_key, value) =>
      typeof value === 'string' ? value.slice(0, shortString).toWellFormed() : value,
    )
    if (keeps === 0 || fits(json, limit)) return json
  }
}

type Details = NonNullable<LogRecord['details']>
type Trim = (details: Details) => Details

function withDetails(record: LogRecord, own: Trim, inner: Trim): LogRecord {
  const shorter: LogRecord = { ...record, details: { ...own(record.details ?? {}), trimmed: true } }
  const trimInner = (event: InnerEvent): InnerEvent => ({ ...event, details: inner(event.details ?? {}) })
  if (record.attempts !== undefined) shorter.attempts = record.attempts.map(trimInner)
  if (record.decisions !== undefined) shorter.decisions = record.decisions.map(trimInner)
  return shorter
}

const smallDetails: Trim = (details) => ({
  ...Object.fromEntries(
    Object.entries(details).filter(([, value]) => (JSON.stringify(value) ?? '').length <= smallDetail),
  ),
  ...noDetails(details),
})

/** Only what the control plane acts on: what waits for a person, a batch that holds what it may cost, and what lists show. */
const noDetails: Trim = ({ escalation, batch, made }) => ({
  ...(escalation !== undefined && { escalation }),
  ...(batch !== undefined && { batch }),
  ...(made !== undefined && { made }),
})

const fits = (json: string, limit: number): boolean => json.length * 3 <= limit || Buffer.byteLength(json) <= limit

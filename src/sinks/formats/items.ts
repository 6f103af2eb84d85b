/** What a receiver gets of a record: the record itself, its events, or these in OCSF. */

import type { ChainedRecord } from '../../events/engine/event-log.ts'
import { type Event, latencyOf } from '../../events/event.ts'
import { eventsOfRecord } from '../../events/log/record-events.ts'
import type { Condition } from '../../inspection/condition.ts'
import type { Item } from '../sink.ts'
import type { SinkFormat } from '../sink-resource.ts'
import { ocsfOf } from './ocsf.ts'

/** The messages of a record that pass the filter; none: it is left out. */
export function itemsOf(record: ChainedRecord, format: SinkFormat, filter: Condition | null): Item[] {
  if (format === 'records' && filter === null && record.quarantine === undefined && record.damaged === undefined) {
    return [recordItem(record, null)]
  }
  const shown = eventsOfRecord(record)
  const passed = filter === null ? shown : shown.filter(({ event }) => filter(event))
  if (passed.length === 0) return []
  if (format === 'records') return [recordItem(record, passed.at(-1)?.event ?? null)]
  return passed.map(({ event, json }) =>
    eventItem(record, event, format === 'ocsf' ? JSON.stringify(ocsfOf(event)) : (json ?? JSON.stringify(event))),
  )
}

/** A line of a record that is none of JSON would break the receiver's reading, so it stands in a text. */
const lineOf = ({ text, quarantine }: ChainedRecord): string =>
  quarantine === undefined ? text : JSON.stringify({ gatehouse_quarantined: text })

/** The text that was chained, of a line of an archive. */
export function chainedText(line: string): string {
  if (!line.startsWith('{"gatehouse_quarantined":')) return line
  try {
    const { gatehouse_quarantined: text } = JSON.parse(line)
    return typeof text === 'string' ? text : line
  } catch {
    // An altered line: its digest tells.
    return line
  }
}

const idMember = /"event_id":"([0-9a-f-]{36})"/

function recordItem(record: ChainedRecord, event: Event | null): Item {
  const { position, chain, seq, at, text } = record
  const id = event?.event_id ?? idMember.exec(text)?.[1] ?? `${chain}/${seq}`
  return { id, at, position, chain, json: lineOf(record), type: event?.event_type ?? '', verdict: '', fields: {} }
}

export const eventItem = (of: Pick<Item, 'position' | 'chain' | 'at'>, event: Event, json: string): Item => ({
  id: event.event_id,
  at: Date.parse(event.timestamp),
  position: of.position,
  chain: of.chain,
  json,
  type: event.event_type,
  verdict: event.verdict,
  fields: fieldsOf(event),
})

function fieldsOf(event: Event): Item['fields'] {
  const { event_attribution: who, event_cost_attribution: cost, details } = event
  return {
    reason_code: event.reason_code,
    request_id: event.request_id,
    gateway_id: who.gateway_id,
    team_id: who.team_id,
    token_id: who.token_id,
    user_id: who.user_id,
    session_id: who.session_id,
    model: textOf(details?.model),
    provider: textOf(details?.provider),
    status: numberOf(details?.status),
    latency_ms: numberOf(latencyOf(event)),
    input_tokens: cost?.input_tokens ?? null,
    output_tokens: cost?.output_tokens ?? null,
    cost: cost?.cost ?? null,
  }
}

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null)
const numberOf = (value: unknown): number | null => (typeof value === 'number' ? value : null)

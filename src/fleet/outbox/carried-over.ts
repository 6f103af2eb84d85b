/**
 * What an instance takes over from the previous one in the same data directory, whose chain could not continue
 * (fleet/outbox/README.md): events that may not have reached the ledger. They keep their ids, so that the ledger
 * recognises those it has, and get numbers of the new chain. Their use of limits is not counted again: the former
 * worker's shares stay spent until they are released (usage/lease/README.md rule 14).
 */
import { type Event, noAttribution } from '../../events/event.ts'
import type { LogRecord } from '../../events/log/record.ts'
import { timestamp } from '../../lib/clock.ts'
import type { Outbox } from './outbox.ts'
import { parseEventRecord } from './record.ts'

/** An ended instance, as the next one finds it. */
export interface EndedInstance {
  instance_id: string
  gateway_id: string | null
  /** The number of the last event that is certainly in the ledger. */
  after: number
  /** The failure code that ended it. */
  reason: string
}

const readAtOnce = 64

/**
 * Copies the events of `former` behind `ended.after` into `next`, followed by one event that records it. Returns their
 * number.
 */
export async function carryOver(
  { former, next }: { former: Outbox; next: Pick<Outbox, 'add'> },
  ended: EndedInstance,
  { now, newId }: { now: number; newId(): string },
): Promise<number> {
  const reader = former.reader()
  let after = Math.max(ended.after, former.oldestEvent - 1)
  let carried = 0
  try {
    for (;;) {
      const events = reader.read(after, readAtOnce)
      if (events.length === 0) break
      after = events.at(-1)?.n ?? after
      carried += events.length
      await next.add(events.map(({ record }) => moved(record, ended.instance_id)))
    }
  } finally {
    reader.close()
  }
  await next.add([replacement(ended, carried, { now, newId })])
  return carried
}

function moved(record: Buffer, instanceId: string): LogRecord {
  const { n, body } = parseEventRecord(record)
  const { settlements: _settlements, ...event }: LogRecord = JSON.parse(body)
  return { ...event, details: { ...event.details, carried_from: { instance_id: instanceId, n } } }
}

const replacement = (
  { instance_id: instanceId, gateway_id: gatewayId, after, reason }: EndedInstance,
  carried: number,
  { now, newId }: { now: number; newId(): string },
): Event => ({
  event_id: newId(),
  event_type: 'gateway.instance_replaced',
  request_id: null,
  timestamp: timestamp(now),
  verdict: 'error',
  reason_code: reason,
  config_version: 0,
  event_attribution: { ...noAttribution, gateway_id: gatewayId },
  details: { instance_id: instanceId, after, carried },
})

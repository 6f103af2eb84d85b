/** What the record says of its own sinks, and the event with which a receiver is tried. */
import { controlPlaneEvent, versionNow } from '../../events/control-plane-event.ts'
import type { Event } from '../../events/event.ts'
import type { EventType } from '../../events/event-types.ts'
import type { Recorder } from '../../events/recorder.ts'
import { anonymous, type Principal } from '../../identity/principal.ts'
import type { Clock } from '../../lib/clock.ts'
import type { NewId } from '../../lib/ids.ts'
import type { Log } from '../../lib/log/log.ts'
import type { MasterKey } from '../../store/keys/master-key.ts'
import type { Database } from '../../store/open.ts'
import { eventItem } from '../formats/items.ts'
import { ocsfOf } from '../formats/ocsf.ts'
import type { Item } from '../sink.ts'
import type { SinkFormat } from '../sink-resource.ts'

export interface SinkDependencies {
  state: Database
  ledger: Database
  recorder: Recorder
  masterKey: MasterKey
  clock: Clock
  newId: NewId
  log: Log
}

export type SinkEventType = Extract<EventType, `sink.${string}`>

interface Told {
  type: SinkEventType
  sink: { id: string; name: string }
  details?: Record<string, unknown>
  reason?: string
  by?: { principal: Principal; requestId: string }
}

export async function sinkEvent(
  { state, clock, newId }: Pick<SinkDependencies, 'state' | 'clock' | 'newId'>,
  { type, sink, details, reason, by }: Told,
): Promise<Event> {
  return controlPlaneEvent({
    type,
    verdict: reason === undefined ? 'allow' : 'error',
    reason: reason ?? 'ok',
    principal: by?.principal ?? { ...anonymous, name: 'sinks' },
    requestId: by?.requestId ?? '',
    details: { sink_id: sink.id, name: sink.name, ...details },
    configVersion: await versionNow(state),
    clock,
    newId,
  })
}

/** The test event as a receiver gets it. */
export function testItem(event: Event, format: SinkFormat): Item {
  const of = { position: 0, chain: 'control-plane', at: Date.parse(event.timestamp) }
  return eventItem(of, event, JSON.stringify(format === 'ocsf' ? ocsfOf(event) : event))
}

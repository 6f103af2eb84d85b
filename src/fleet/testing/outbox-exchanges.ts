/** Opens and closes exchanges of a journal by the events themselves, of which a gateway gives the JSON. */
import type { Event } from '../../events/event.ts'
import { eventsOf, type LogRecord } from '../../events/log/record.ts'
import { wellFormedJson } from '../../lib/json/well-formed-json.ts'
import type { RecordedUse } from '../../usage/rate/rate.ts'
import type { Journal } from '../protocol/worker.ts'

export const openIn = (
  journal: Journal,
  exchangeId: string,
  interrupted: Event,
  innerEvents?: number,
  uses?: readonly RecordedUse[],
): Promise<void> => journal.open(exchangeId, wellFormedJson(interrupted), innerEvents, uses)

export const closeIn = (
  journal: Journal,
  exchangeId: string,
  record: LogRecord,
  uses?: readonly RecordedUse[],
): Promise<void> => journal.close(exchangeId, wellFormedJson(record), eventsOf(record) - 1, uses)

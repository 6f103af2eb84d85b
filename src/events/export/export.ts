/**
 * Every event of a window as text, oldest first, at constant memory: a page is read when the reader has taken the one
 * before. Events that arrive after the start are left out. A database error breaks the text off, and so does retention
 * if it removes unread events (events/log/unread-events.ts): a partial export never looks complete.
 */
import { Failure } from '../../failure.ts'
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import type { Database } from '../../store/open.ts'
import type { Row } from '../../store/statement.ts'
import type { Event } from '../event.ts'
import { UnreadEvents } from '../log/unread-events.ts'
import {
  type Position,
  type PublicEvent,
  positionOf,
  publicEventColumns,
  readPublicEvents,
} from '../query/public-event.ts'
import { firstPositionSince, visibleTo } from '../query/query.ts'
import type { Visibility } from '../visibility.ts'

export const exportFormats = ['csv', 'json'] as const
type ExportFormat = (typeof exportFormats)[number]

export const contentTypes: Readonly<Record<ExportFormat, string>> = {
  csv: 'text/csv; charset=utf-8; header=present',
  json: 'application/json; charset=utf-8',
}

const columns = [
  'event_id',
  'timestamp',
  'event_type',
  'request_id',
  'verdict',
  'reason_code',
  'config_version',
] as const satisfies readonly (keyof Event)[]

const defaultPageSize = 500
const beginningsAtMost = 10

interface ExportWindow {
  /** Milliseconds since the epoch, inclusive. */
  since: number
  /** Exclusive; null for no end. */
  until: number | null
  /** The position of the last event to include. */
  lastPosition: Position
  visibility: Visibility
  /** Fires when the reader has left. */
  signal: AbortSignal
  /** Events read at a time; default 500. */
  pageSize?: number
}

/** A piece of the text, with its number of events and the finished part of the window, from 0 to 1. */
export interface ExportPiece {
  text: string
  events: number
  progress: number
  /** When the first event happened, if there are any. */
  firstEventAt?: string | undefined
}

/** Says when the first event of an export happened. Retention has removed earlier ones of the window. */
const firstEventHeader = 'x-service-first-event-at'

/** Where the ledger's events end. */
export async function lastPosition(ledger: Database): Promise<Position> {
  const [{ last = '0' } = {}] = await ledger.read<{ last: string }>(
    'select cast(coalesce(max(position), 0) as text) as last from events',
  )
  return positionOf(last)
}

/** The text of a window in a format, piece by piece. Ends early if the signal has fired. */
export const exportText = (
  ledger: Database,
  window: ExportWindow,
  format: ExportFormat,
): AsyncGenerator<ExportPiece, void, undefined> => (format === 'csv' ? asCsv : asJson)(readPages(ledger, window))

/**
 * The text as one streamed answer, with the first event's time in `firstEventHeader`. Stops when the reader leaves.
 * Throws errors that occur before the header is known.
 */
export async function exportAnswer(ledger: Database, window: ExportWindow, format: ExportFormat): Promise<Response> {
  const pieces = exportText(ledger, window, format)
  const begun: ExportPiece[] = []
  for (let ended = false; !ended && begun.at(-1)?.firstEventAt === undefined; ) {
    const { done, value } = await pieces.next()
    if (value !== undefined) begun.push(value)
    ended = done === true
  }
  const firstEventAt = begun.at(-1)?.firstEventAt
  const encoder = new TextEncoder()
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const first = begun.shift()
      const { done, value } = first === undefined ? await pieces.next() : { done: false, value: first }
      if (done) controller.close()
      else controller.enqueue(encoder.encode(value.text))
    },
    cancel: () => pieces.return(undefined).then(() => undefined),
  })
  const headers = new Headers({ 'content-type': contentTypes[format] })
  if (firstEventAt !== undefined) headers.set(firstEventHeader, firstEventAt)
  return new Response(stream, { headers })
}

interface Page {
  shown: PublicEvent[]
  progress: number
}

/** The pages. If retention overtakes it before the first page, it starts again with what is left. */
async function* readPages(ledger: Database, window: ExportWindow): AsyncGenerator<Page> {
  for (let beginnings = 1; ; beginnings += 1) {
    let begun = false
    try {
      for await (const page of readPagesOnce(ledger, window)) {
        begun = true
        yield page
      }
      return
    } catch (error) {
      const overtaken = error instanceof Failure && error.code === 'export_overtaken'
      if (!overtaken || begun || beginnings === beginningsAtMost) throw error
    }
  }
}

async function* readPagesOnce(
  ledger: Database,
  { since, until, lastPosition: last, visibility, signal, pageSize = defaultPageSize }: ExportWindow,
): AsyncGenerator<Page> {
  const seen = visibleTo(visibility)
  const first = await firstPositionSince(ledger, since)
  const unread = await UnreadEvents.from(ledger, first)
  let after: Position | null = null
  for (;;) {
    const rows: Row[] = await ledger.read(
      `select ${publicEventColumns} from events where position ${after === null ? '>=' : '>'} ? and position <= ?
        and +timestamp >= ? and +timestamp < ? and ${seen.sql} order by events.position limit ${pageSize}`,
      [after ?? first, last, since, until ?? Number.MAX_SAFE_INTEGER, ...seen.args],
    )
    if (signal.aborted) return
    after = positionOf(rows.at(-1)?.position ?? last)
    const whole = rows.length < pageSize
    const progress = whole ? 1 : (Number(after) + 1 - Number(first)) / (Number(last) + 1 - Number(first))
    const shown = await readPublicEvents(ledger, rows)
    await unread.readUpTo(after)
    if (rows.length > 0) yield { shown, progress }
    if (whole) return
    await yieldToEventLoop()
  }
}

async function* asJson(pages: AsyncGenerator<Page>): AsyncGenerator<ExportPiece, void, undefined> {
  let separator = '{"events":['
  for await (const { shown, progress } of pages) {
    const text = separator + shown.map(({ json }) => json).join(',')
    yield { text, events: shown.length, progress, firstEventAt: shown[0]?.event.timestamp }
    separator = ','
  }
  yield { text: separator === ',' ? ']}' : '{"events":[]}', events: 0, progress: 1 }
}

async function* asCsv(pages: AsyncGenerator<Page>): AsyncGenerator<ExportPiece, void, undefined> {
  yield { text: csvLine(columns), events: 0, progress: 0 }
  for await (const { shown, progress } of pages) {
    const text = shown.map(({ event }) => csvLine(columns.map((column) => event[column]))).join('')
    yield { text, events: shown.length, progress, firstEventAt: shown[0]?.event.timestamp }
  }
}

/** One record (RFC 4180). A field that a spreadsheet would take for a formula gets an apostrophe before it. */
const csvLine = (fields: readonly (string | number | null | undefined)[]): string =>
  `${fields.map(csvField).join(',')}\r\n`

function csvField(value: string | number | null | undefined): string {
  if (value == null) return ''
  if (typeof value === 'number') return String(value)
  const text = /^[=+\-@\t\r\n]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

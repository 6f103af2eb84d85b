/**
 * Every event of a window as text, oldest first, at constant memory: a page is read when the reader has taken the one
 * before. Events that arrive after the start are left out. A database error breaks the text off, and so does retention
 * if it may have removed unread events: a partial export never looks complete.
 */
import { Failure } from '../../failure.ts'
import type { Database } from '../../store/open.ts'
import { logOf } from '../engine/log-of.ts'
import type { FoundEvent } from '../log/log-query.ts'
import { readLogHead } from '../log/segment-rows.ts'
import type { EventConditions } from '../query/filters.ts'
import { type CsvColumns, csvHeader, csvRows } from './csv.ts'

export const exportFormats = ['csv', 'json'] as const
type ExportFormat = (typeof exportFormats)[number]

export const contentTypes: Readonly<Record<ExportFormat, string>> = {
  csv: 'text/csv; charset=utf-8; header=present',
  json: 'application/json; charset=utf-8',
}

/** Events of a piece: many, because retention is looked at for each. */
const pieceEvents = 1024
const beginningsAtMost = 10

interface ExportWindow {
  /** Milliseconds since the epoch, inclusive. */
  since: number
  /** Exclusive; null for no end. */
  until: number | null
  /** The position after the last record to include. */
  ceiling: number
  conditions: EventConditions | 'nothing'
  /** Fires when the reader has left. */
  signal: AbortSignal
  /** Of CSV; absent: the usual ones. */
  columns?: CsvColumns
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

/** The text of a window in a format, piece by piece. Ends early if the signal has fired. */
export const exportText = (
  ledger: Database,
  window: ExportWindow,
  format: ExportFormat,
): AsyncGenerator<ExportPiece, void, undefined> => {
  const pages = readPages(ledger, window)
  return format === 'csv' ? asCsv(pages, window.columns ?? { asked: [], alone: false }) : asJson(pages)
}

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
  found: FoundEvent[]
  progress: number
}

/** The events, page by page. If retention overtakes it before the first page, it starts again with what is left. */
export async function* readPages(ledger: Database, window: ExportWindow): AsyncGenerator<Page> {
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

async function* readPagesOnce(ledger: Database, window: ExportWindow): AsyncGenerator<Page> {
  const { since, ceiling, conditions, signal } = window
  if (conditions === 'nothing') return
  const until = window.until ?? Number.MAX_SAFE_INTEGER
  const retention = await Retention.from(ledger, since)
  const progressAt = await progressOf(ledger, window)
  const query = { since, until, ceiling, ...conditions, order: 'oldest', after: null } as const
  let found: FoundEvent[] = []
  let reached = since
  for await (const part of logOf(ledger).parts(query)) {
    if (signal.aborted) return
    for (const one of part.events) {
      const event = conditions.shown(one.event)
      found.push(event === one.event ? one : { ...one, event, json: undefined })
    }
    reached = part.reached.at
    if (found.length < pieceEvents) continue
    await retention.readUpTo(reached)
    yield { found, progress: progressAt(reached) }
    found = []
  }
  await retention.readUpTo(reached)
  if (found.length > 0) yield { found, progress: 1 }
}

/** How much of the time between its first and its last event an export has passed. */
async function progressOf(ledger: Database, { since, until }: ExportWindow): Promise<(at: number) => number> {
  const bounds = await logOf(ledger).times()
  const first = Math.max(since, bounds?.first ?? since)
  const last = Math.min(until ?? Number.MAX_SAFE_INTEGER, bounds?.last ?? since)
  return (at) => Math.max(0, Math.min(1, (at - first) / Math.max(1, last - first)))
}

/**
 * Whether retention has removed events that an export had not read. What retention removes was received, and so
 * happened, before the log's `removed_until`; what happened before the place that was reached has been read.
 */
class Retention {
  readonly #ledger: Database
  #removedUntil: number
  /** All that happened before this was read before anything else was removed. */
  #readUpTo: number

  private constructor(ledger: Database, removedUntil: number, since: number) {
    this.#ledger = ledger
    this.#removedUntil = removedUntil
    this.#readUpTo = since
  }

  static async from(ledger: Database, since: number): Promise<Retention> {
    return new Retention(ledger, (await readLogHead(ledger)).removedUntil, since)
  }

  /** Throws `export_overtaken` if unread events may have been removed since the last call. */
  async readUpTo(at: number): Promise<void> {
    const { removedUntil } = await readLogHead(this.#ledger)
    if (removedUntil > this.#removedUntil && removedUntil >= this.#readUpTo) throw new Failure('export_overtaken')
    this.#removedUntil = removedUntil
    this.#readUpTo = at
  }
}

async function* asJson(pages: AsyncGenerator<Page>): AsyncGenerator<ExportPiece, void, undefined> {
  let separator = '{"events":['
  for await (const { found, progress } of pages) {
    const text = separator + found.map(({ event, json }) => json ?? JSON.stringify(event)).join(',')
    yield { text, events: found.length, progress, firstEventAt: found[0]?.event.timestamp }
    separator = ','
  }
  yield { text: separator === ',' ? ']}' : '{"events":[]}', events: 0, progress: 1 }
}

async function* asCsv(pages: AsyncGenerator<Page>, columns: CsvColumns): AsyncGenerator<ExportPiece, void, undefined> {
  yield { text: csvHeader(columns), events: 0, progress: 0 }
  const rowOf = csvRows(columns)
  for await (const { found, progress } of pages) {
    const text = found.map(({ event }) => rowOf(event)).join('')
    yield { text, events: found.length, progress, firstEventAt: found[0]?.event.timestamp }
  }
}

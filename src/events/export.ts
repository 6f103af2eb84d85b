/**
 * Every event of a window as one streamed answer, oldest first, at constant memory: a page is read when the one before
 * has been taken by the reader. What arrives after the start is not part of it. A database that fails on the way breaks
 * the answer off, so that half an export never looks like a whole one.
 */
import type { Database } from '../store/open.ts'
import type { Event } from './event.ts'
import { firstPositionSince, seenBy, shownBody } from './query.ts'
import type { Visibility } from './visibility.ts'

export const exportFormats = ['csv', 'json'] as const
export type ExportFormat = (typeof exportFormats)[number]

const columns = [
  'event_id',
  'timestamp',
  'event_type',
  'request_id',
  'verdict',
  'reason_code',
  'config_version',
] as const satisfies readonly (keyof Event)[]

const pageSize = 500

interface ExportOptions {
  /** Milliseconds since the epoch, inclusive. */
  since: number
  format: ExportFormat
  visibility: Visibility
  /** Fires when the caller leaves. */
  signal: AbortSignal
}

export async function exportEvents(ledger: Database, options: ExportOptions): Promise<Response> {
  const [{ last = 0 } = {}] = await ledger.read<{ last: number }>(
    'select coalesce(max(position), 0) as last from events',
  )
  const first = await firstPositionSince(ledger, options.since)
  const write = options.format === 'csv' ? asCsv : asJson
  const text = write(readBodies(ledger, options, first, last))
  const encoder = new TextEncoder()
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await text.next()
      if (done) controller.close()
      else controller.enqueue(encoder.encode(value))
    },
    cancel: () => text.return(undefined).then(() => undefined),
  })
  const type = options.format === 'csv' ? 'text/csv; charset=utf-8; header=present' : 'application/json; charset=utf-8'
  return new Response(stream, { headers: { 'content-type': type } })
}

async function* readBodies(
  ledger: Database,
  { since, visibility, signal }: ExportOptions,
  first: number,
  last: number,
): AsyncGenerator<string[]> {
  const seen = seenBy(visibility)
  let next = first
  while (next <= last && !signal.aborted) {
    const rows = await ledger.read<{ position: number; body: string }>(
      `select position, ${shownBody} from events where position between ? and ? and +timestamp >= ? and ${seen.sql}
        order by position limit ${pageSize}`,
      [next, last, since, ...seen.args],
    )
    if (rows.length > 0) yield rows.map(({ body }) => body)
    if (rows.length < pageSize) return
    next = (rows.at(-1)?.position ?? last) + 1
    // The native driver frees what it read only between turns of the event loop.
    await new Promise((resolve) => setImmediate(resolve))
  }
}

async function* asJson(pages: AsyncGenerator<string[]>): AsyncGenerator<string, void, undefined> {
  let separator = '{"events":['
  for await (const bodies of pages) {
    yield separator + bodies.join(',')
    separator = ','
  }
  yield separator === ',' ? ']}' : '{"events":[]}'
}

async function* asCsv(pages: AsyncGenerator<string[]>): AsyncGenerator<string, void, undefined> {
  yield csvLine(columns)
  for await (const bodies of pages) {
    yield bodies
      .map((body) => {
        const event: Event = JSON.parse(body)
        return csvLine(columns.map((column) => event[column]))
      })
      .join('')
  }
}

/** One record (RFC 4180). A field that a spreadsheet would take for a formula gets an apostrophe before it. */
const csvLine = (fields: readonly (string | number | null)[]): string => `${fields.map(csvField).join(',')}\r\n`

function csvField(value: string | number | null): string {
  if (value === null) return ''
  if (typeof value === 'number') return String(value)
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

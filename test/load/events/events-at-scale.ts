/**
 * What the event log costs when it holds much:
 *
 *   bun test/load/events/events-at-scale.ts [--requests 1000000] [--least 64] [--most 500] [--sums] [--keep <directory>]
 *
 * A log of so many exchanges is made as gateways and the housekeeping would make it. Then it is asked what people ask,
 * and exported. `--sums` makes the sums of charts too. `--keep` names a directory whose log is used if it has one, and
 * kept. `--parts` measures the parts of ingest alone.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Database, openDatabase } from '../../../src/store/open.ts'
import { migrateLedger } from '../../../src/store/schema/migrate.ts'
import { type BatchSizes, fill, partsOfIngest } from './scale-ingest.ts'
import { exportAll, measureQuestions, questionsOf } from './scale-questions.ts'

const days = 7 * 86_400_000
const units = ['p50 ms', 'p99 ms', 'p50 processor ms', 'p99 processor ms', 'events found']
const usualSizes: BatchSizes = { least: 64, most: 500 }

/** Bytes of the ledger for each request, the log's share and that of each table. */
async function sizeOf(ledger: Database, requests: number): Promise<Record<string, number>> {
  const [row] = await ledger.read<{ bytes: number }>(
    'select (select page_count from pragma_page_count) * (select page_size from pragma_page_size) as bytes',
  )
  const [free] = await ledger.read<{ bytes: number }>(
    'select (select freelist_count from pragma_freelist_count) * (select page_size from pragma_page_size) as bytes',
  )
  const parts = await ledger.read<{ name: string; bytes: number }>(
    `select 'bodies' as name, sum(length(body)) as bytes from event_blocks union all
      select 'places', sum(length(places)) from event_blocks union all
      select 'headers', sum(length(header)) from event_segments union all
      select 'ids', sum(length(ids)) from event_segments union all
      select 'facet rows', sum(length(facet) + length(value) + 16) from segment_facets`,
  )
  const [counts] = await ledger.read<{ segments: number; blocks: number }>(
    'select (select count(*) from event_segments) as segments, (select count(*) from event_blocks) as blocks',
  )
  return {
    'ledger, bytes a request': (row?.bytes ?? 0) / requests,
    'ledger, of it free pages': (free?.bytes ?? 0) / requests,
    ...Object.fromEntries(parts.map(({ name, bytes }) => [`${name}, bytes a request`, bytes / requests])),
    segments: counts?.segments ?? 0,
    blocks: counts?.blocks ?? 0,
  }
}

export async function openLedger(directory: string): Promise<Database> {
  const ledger = await openDatabase(join(directory, 'ledger.db'), directory)
  await migrateLedger(ledger)
  return ledger
}

/** Makes a log of so many requests in the directory, and gives the figures of making and asking it. */
export async function measureLedger(
  directory: string,
  requests: number,
  { sizes, sums }: { sizes: BatchSizes; sums: boolean } = { sizes: usualSizes, sums: false },
): Promise<Record<string, number>> {
  const isNew = !existsSync(join(directory, 'ledger.db'))
  const ledger = await openLedger(directory)
  const now = Date.now()
  const figures: Record<string, number> = {}
  try {
    if (isNew) {
      const { ingest, merge, fold } = await fill(ledger, requests, { since: now - days, until: now, sizes, sums })
      Object.assign(figures, {
        'ingest, µs a request': ingest,
        'merge, µs a request': merge,
        'fold, µs a request': fold,
      })
    }
    Object.assign(figures, await sizeOf(ledger, requests))
    for (const { name, values } of await measureQuestions(ledger, await questionsOf(ledger))) {
      for (const [index, unit] of units.entries()) figures[`${name}, ${unit}`] = values[index] ?? Number.NaN
    }
    return figures
  } finally {
    ledger.close()
  }
}

export function printTable(title: string, figures: Readonly<Record<string, number>>): void {
  console.log(`\n${title}`)
  for (const [name, figure] of Object.entries(figures))
    console.log(`${name.padEnd(44)}${figure.toFixed(2).padStart(14)}`)
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      requests: { type: 'string', default: '1000000' },
      least: { type: 'string', default: '64' },
      most: { type: 'string', default: '500' },
      keep: { type: 'string' },
      sums: { type: 'boolean', default: false },
      parts: { type: 'boolean', default: false },
      export: { type: 'boolean', default: false },
    },
  })
  if (values.parts) {
    for (const size of [64, 256, 500]) printTable(`µs a request, batches of ${size}`, await partsOfIngest(size))
    return
  }
  const directory = values.keep ?? mkdtempSync(join(tmpdir(), 'gatehouse-scale-'))
  mkdirSync(directory, { recursive: true })
  try {
    if (values.export) {
      const ledger = await openLedger(directory)
      printTable('export', await exportAll(ledger))
      ledger.close()
      return
    }
    const sizes = { least: Number(values.least), most: Number(values.most) }
    printTable(
      `${values.requests} requests`,
      await measureLedger(directory, Number(values.requests), { sizes, sums: values.sums }),
    )
    // A process of its own, so that its memory is that of an export.
    const child = Bun.spawn([process.execPath, import.meta.path, '--export', '--keep', directory], {
      stdout: 'inherit',
      stderr: 'inherit',
    })
    await child.exited
  } finally {
    if (values.keep === undefined) rmSync(directory, { recursive: true, force: true })
  }
}

if (import.meta.main) await main()

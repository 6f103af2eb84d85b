/**
 * What reading costs when there are many events: `bun test/load/events-at-scale.ts [events]`. Two ledgers are made
 * directly, one of 10 000 events and one of 1 000 000 (or as many as are named), alike but for their size; the same
 * questions are put to both, and answered as times and as ratios. Then the large one is exported by a process of its
 * own, whose memory is watched.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Event, noAttribution } from '../../src/events/event.ts'
import { exportText, lastPosition } from '../../src/events/export/export.ts'
import { appendStatements, chainAfter, readChainHead } from '../../src/events/log/append.ts'
import type { EventFilters } from '../../src/events/query/filters.ts'
import { readEventPage } from '../../src/events/query/query.ts'
import { foldRollups } from '../../src/events/rollups/fold.ts'
import { rollupStatements } from '../../src/events/rollups/rollup.ts'
import { readSeries, type SeriesQuery } from '../../src/events/rollups/series.ts'
import { timestamp } from '../../src/lib/clock.ts'
import { type Database, openDatabase } from '../../src/store/open.ts'
import { migrateLedger } from '../../src/store/schema/migrate.ts'
import { median, timesOf } from './timing.ts'

const all = { teams: 'every', ownTokens: [] } as const
const medianOf = async (work: () => Promise<unknown>): Promise<number> => median(await timesOf(20, work))
const spanMilliseconds = 14 * 86_400_000
const now = Date.now()

const models = ['gpt-4o', 'gpt-4o-mini', 'claude-sonnet-4', 'claude-haiku-4', 'gemini-2.5-pro']
const ids = (count: number): string[] => Array.from({ length: count }, () => Bun.randomUUIDv7())
const world = { teams: ids(10), gateways: ids(4), tokens: ids(200) }

/** One in a hundred is refused, one in a thousand for a rare reason. */
function eventAt(index: number, count: number): Event {
  const rare = index % 1000 === 7
  const denied = rare || index % 100 === 3
  const at = now - spanMilliseconds + Math.floor((index / count) * spanMilliseconds)
  const pick = <Value>(values: readonly Value[], factor: number): Value | null =>
    values[(index * factor) % values.length] ?? null
  return {
    event_id: Bun.randomUUIDv7(),
    event_type: 'gateway.request.outcome',
    request_id: `request-${index}`,
    timestamp: timestamp(at),
    verdict: denied ? 'deny' : 'allow',
    reason_code: rare ? 'policy.rare' : denied ? 'access_denied' : 'ok',
    config_version: 7,
    exchange_id: Bun.randomUUIDv7(),
    event_attribution: {
      ...noAttribution,
      team_id: pick(world.teams, 7),
      gateway_id: pick(world.gateways, 3),
      token_id: pick(world.tokens, 11),
      key_class: 'durable',
    },
    details: {
      route: 'POST /v1/chat/completions',
      model: pick(models, 13),
      provider: 'openai',
      status: denied ? 403 : 200,
      latency_ms: 200 + ((index * 7919) % 4000),
      first_token_ms: 50 + ((index * 104_729) % 900),
      attempts: 1,
      stream: true,
    },
    event_cost_attribution: {
      currency: 'USD',
      cost: 0.000_123,
      estimated: false,
      input_tokens: 812,
      output_tokens: 230,
      cached_input_tokens: null,
      reasoning_tokens: null,
      provider: 'openai',
      model: 'gpt-4o',
      price_source: 'table',
      spend_owner: null,
    },
    prompt_hash: 'k1:0f2d6c3e6fd1c5c2b6b3d1f5a0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3',
  }
}

async function fill(ledger: Database, count: number): Promise<number> {
  const began = performance.now()
  for (let start = 0; start < count; start += 500) {
    const size = Math.min(500, count - start)
    const events = Array.from({ length: size }, (_, index) => eventAt(start + index, count))
    const receivedAt = Date.parse(events.at(-1)?.timestamp ?? '')
    const head = await readChainHead(ledger, 'load')
    const chained = chainAfter(
      head,
      events.map((event) => ({ event, body: JSON.stringify(event) })),
    )
    const append = appendStatements({ chain: 'load', head, events: chained, receivedAt })
    await ledger.write([...append, ...rollupStatements(events, receivedAt)])
    if (start % 5000 === 0) await foldRollups(ledger)
    await new Promise((resolve) => setImmediate(resolve))
  }
  await foldRollups(ledger)
  return count / ((performance.now() - began) / 1000)
}

async function measure(ledger: Database): Promise<Record<string, number>> {
  const page = (filters: EventFilters, since = now - 30 * 86_400_000) =>
    medianOf(() =>
      readEventPage(ledger, {
        filters: { since: '30d', ...filters },
        since,
        limit: 100,
        cursor: undefined,
        visibility: all,
      }),
    )
  const series = (query: Partial<SeriesQuery>) =>
    medianOf(() =>
      readSeries(ledger, { query: { since: now - 86_400_000, until: now, ...query }, visibility: all, now }),
    )
  return {
    'first page': await page({}),
    'page by verdict': await page({ verdict: 'deny' }),
    'page by a rare reason': await page({ reason_code: 'policy.rare' }),
    'page by model and verdict': await page({ model: 'gpt-4o', verdict: 'deny' }),
    'page by token and gateway': await page({ token_id: world.tokens[5], gateway_id: world.gateways[1] }),
    'chart of 24 h by verdict': await series({ by: 'verdict' }),
    'chart of 24 h by model': await series({ by: 'model' }),
    'chart of 14 d by model': await series({ since: now - spanMilliseconds, by: 'model' }),
    'chart of 14 d by token': await series({ since: now - spanMilliseconds, by: 'token' }),
  }
}

/** Run in a process of its own, so that its memory is that of an export. */
async function exportAll(file: string, directory: string): Promise<void> {
  const ledger = await openDatabase(file, directory)
  const signal = new AbortController().signal
  for (const format of ['json', 'csv'] as const) {
    const began = performance.now()
    const window = { since: 0, until: null, lastPosition: await lastPosition(ledger), visibility: all, signal }
    let [events, bytes, peak] = [0, 0, 0]
    for await (const piece of exportText(ledger, window, format)) {
      events += piece.events
      bytes += Buffer.byteLength(piece.text)
      peak = Math.max(peak, process.memoryUsage().rss)
    }
    const seconds = (performance.now() - began) / 1000
    console.log(
      `export ${format}: ${events} events, ${Math.round(events / seconds)} a second, ${(bytes / 1e6 / seconds).toFixed(0)} MB/s, peak memory ${(peak / 1e6).toFixed(0)} MB`,
    )
  }
  ledger.close()
}

/** Makes a ledger of so many events in the directory, and gives the milliseconds of each question to it. */
export async function measureLedger(directory: string, count: number): Promise<Record<string, number>> {
  const ledger = await openDatabase(ledgerFile(directory, count), directory)
  try {
    await migrateLedger(ledger)
    const appended = await fill(ledger, count)
    return { 'appended a second': appended, ...(await measure(ledger)) }
  } finally {
    ledger.close()
  }
}

const ledgerFile = (directory: string, count: number): string => join(directory, `${count}.db`)

async function compare(count: number): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-scale-'))
  try {
    const [small, large] = [await measureLedger(directory, 10_000), await measureLedger(directory, count)]
    for (const [question, figure] of Object.entries(large)) {
      const before = small[question] ?? Number.NaN
      console.log(`${question}: ${before.toFixed(2)}, ${figure.toFixed(2)}, ratio ${(figure / before).toFixed(2)}`)
    }
    const child = Bun.spawn([process.execPath, import.meta.path, 'export', directory, String(count)], {
      stdout: 'inherit',
      stderr: 'inherit',
    })
    await child.exited
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

if (import.meta.main) {
  const [first = '1000000', directory = '', count = ''] = process.argv.slice(2)
  if (first === 'export') await exportAll(ledgerFile(directory, Number(count)), directory)
  else await compare(Number(first))
}

/** What a chart of a month costs: from the sums of the ledger, from the records in ClickHouse, and from a view there. */
import { mkdirSync } from 'node:fs'
import type { ClickHouseClient } from '@clickhouse/client'
import { recordsTable } from '../../../src/events/clickhouse/schema.ts'
import { readSeries } from '../../../src/events/rollups/series.ts'
import { median, timesOf } from '../generator/timing.ts'
import { openLedger } from './events-at-scale.ts'
import { fill } from './scale-ingest.ts'

const month = 30 * 86_400_000
const tries = 10
/** Enough that each day has each model, team and verdict, of which a chart reads rows; more requests add none. */
const requestsWithSums = 50_000

/** The view that a chart by model could read: by hour, team, model and verdict, as the sums of the ledger. */
const view = 'gatehouse_sums'
const sumsOfRecords = `SELECT toStartOfHour(r.time) AS hour, r.team[1] AS team, r.model[1] AS model, r.verdict[1] AS verdict,
  sumState(r.requests) AS requests, sumState(r.cost_nano) AS cost, sumState(r.input_tokens) AS input,
  sumState(r.output_tokens) AS output, quantilesTDigestState(0.5, 0.95, 0.99)(r.latency_ms) AS latency
  FROM ${recordsTable} AS r WHERE r.requests = 1 GROUP BY hour, team, model, verdict`

/** Milliseconds, of which of the processor. */
async function costOf(work: () => Promise<unknown>, busyMs: () => number): Promise<[number, number]> {
  const before = busyMs()
  const times = await timesOf(tries, work)
  return [median(times), (busyMs() - before) / tries]
}

/** A chart from the sums of the ledger, in a ledger of its own. */
export async function chartOfSums(directory: string, busyMs: () => number): Promise<Record<string, number>> {
  mkdirSync(directory, { recursive: true })
  const ledger = await openLedger(directory)
  const now = Date.now()
  const sizes = { least: 256, most: 512 }
  const { fold } = await fill(ledger, requestsWithSums, { since: now - month, until: now, sizes, sums: true })
  const chart = (since: number) =>
    readSeries(ledger, {
      ...{ query: { since, until: now, by: 'model' }, visibility: { teams: 'every', ownTokens: [] }, now },
    })
  const [wall, busy] = await costOf(() => chart(now - month), busyMs)
  const [weekWall, weekBusy] = await costOf(() => chart(now - 7 * 86_400_000), busyMs)
  ledger.close()
  return {
    'sums, µs of the processor a request': fold,
    'month by model, ms': wall,
    'of the processor': busy,
    'week by model, ms': weekWall,
    'week, of the processor': weekBusy,
  }
}

/** The same of the records in ClickHouse, and of a view that is made of them. */
export async function chartOfClickHouse(
  client: ClickHouseClient,
  busyMs: () => number,
): Promise<Record<string, number>> {
  const since = Date.now() - month
  const rowsOf = async (query: string) => {
    const answer = await client.query({ query, query_params: { since }, format: 'JSONEachRow' })
    return (await answer.json()).length
  }
  const [wall, busy] = await costOf(
    () =>
      rowsOf(`SELECT toDate(time) AS day, model[1] AS model, sum(requests), sum(cost_nano), sum(input_tokens),
        sum(output_tokens), quantilesTDigest(0.5, 0.95, 0.99)(latency_ms) FROM ${recordsTable} FINAL
        WHERE at >= {since:Int64} AND requests = 1 GROUP BY day, model`),
    busyMs,
  )
  await client.command({
    query: `CREATE TABLE ${view} (hour DateTime('UTC'), team String, model String, verdict LowCardinality(String),
      requests AggregateFunction(sum, UInt8), cost AggregateFunction(sum, Int64),
      input AggregateFunction(sum, UInt64), output AggregateFunction(sum, UInt64),
      latency AggregateFunction(quantilesTDigest(0.5, 0.95, 0.99), UInt32))
      ENGINE = AggregatingMergeTree ORDER BY (hour, team, model, verdict)`,
  })
  const [before, began] = [busyMs(), performance.now()]
  await client.command({ query: `INSERT INTO ${view} ${sumsOfRecords}` })
  const made = { ms: performance.now() - began, busy: busyMs() - before }
  const [viewWall, viewBusy] = await costOf(
    () =>
      rowsOf(`SELECT toDate(hour) AS day, model, sumMerge(requests), sumMerge(cost), sumMerge(input), sumMerge(output),
        quantilesTDigestMerge(0.5, 0.95, 0.99)(latency) FROM ${view}
        WHERE hour >= fromUnixTimestamp64Milli({since:Int64}, 'UTC') GROUP BY day, model`),
    busyMs,
  )
  const answer = await client.query({
    query: `SELECT toFloat64(sum(bytes_on_disk)) AS bytes, toFloat64(sum(rows)) AS rows FROM system.parts
      WHERE active AND table = '${view}'`,
    format: 'JSONEachRow',
  })
  const [size] = await answer.json<{ bytes: number; rows: number }>()
  await client.command({ query: `DROP TABLE ${view}` })
  return {
    'month by model of records, ms': wall,
    'of the processor': busy,
    'month by model of a view, ms': viewWall,
    'view, of the processor': viewBusy,
    'making the view, seconds': made.ms / 1000,
    'making it, of the processor': made.busy / 1000,
    'rows of the view': size?.rows ?? 0,
    'MB of the view': (size?.bytes ?? 0) / 1e6,
  }
}

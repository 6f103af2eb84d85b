/**
 * The log in ClickHouse beside the log in segments of the ledger:
 *
 *   bun test/load/events/clickhouse-at-scale.ts [--events 10000000] [--copies 0] [--directory <directory>]
 *
 * A ledger is filled as gateways would, and asked. Then all of it moves to ClickHouse (chdb in a process of its own), and
 * the same is asked again. Processor time is that of both processes together. `--copies` then multiplies the rows inside
 * of ClickHouse, which is faster than moving more, and asks again; copies are older and lead to no chain, so that they
 * are neither exported nor verified.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type ClickHouseClient, ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { Archive } from '../../../src/events/clickhouse/archive.ts'
import { moveSome } from '../../../src/events/clickhouse/move.ts'
import { movedLog } from '../../../src/events/clickhouse/moved-log.ts'
import { clickhouseSchema, recordsTable } from '../../../src/events/clickhouse/schema.ts'
import { keepLogIn } from '../../../src/events/engine/log-of.ts'
import { readLogHead } from '../../../src/events/log/segment-rows.ts'
import { silentLog } from '../../../src/lib/log/log.ts'
import { yieldToEventLoop } from '../../../src/lib/yield-to-event-loop.ts'
import { type Database, openDatabase } from '../../../src/store/open.ts'
import { migrateState } from '../../../src/store/schema/migrate.ts'
import { familySeconds, residentBytes } from '../../support/processes.ts'
import { openLedger, printTable } from './events-at-scale.ts'
import { chartOfClickHouse, chartOfSums } from './scale-charts.ts'
import { fill } from './scale-ingest.ts'
import { type Answer, exportAll, measureQuestions, questionsOf, verifyLog } from './scale-questions.ts'

/** An outcome with its attempt, and in half of all exchanges a decision (scale-records.ts). */
const eventsOfRequest = 2.5
const month = 30 * 86_400_000
const megabyte = 1e6

const ownSeconds = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

async function startServer(directory: string) {
  const script = join(import.meta.dir, '../../fakes/clickhouse-process.ts')
  const child = Bun.spawn([process.execPath, script, '--directory', directory], { stdout: 'pipe' })
  const ready = Promise.withResolvers<string>()
  const read = async () => {
    let said = ''
    for await (const bytes of child.stdout) {
      if (said.includes('\n')) continue
      said += Buffer.from(bytes).toString()
      const [, url] = /^ready (\S+)\n/.exec(said) ?? []
      if (url !== undefined) ready.resolve(url)
    }
  }
  void read()
  return { child, url: await ready.promise }
}

interface Moved {
  records: number
  seconds: number
  ownSeconds: number
  serverSeconds: number
  /** The most memory of each process, in bytes. */
  ownBytes: number
  serverBytes: number
}

async function moveAll(ledger: Database, archive: Archive, pid: number): Promise<Moved> {
  const [began, own, server] = [performance.now(), ownSeconds(), familySeconds(pid)]
  const options = {
    ledger,
    archive,
    clock: { now: () => Number.MAX_SAFE_INTEGER },
    log: silentLog,
    keepMilliseconds: 0,
  }
  let [records, ownBytes, serverBytes] = [0, 0, 0]
  for (;;) {
    const some = await moveSome(options)
    if (some === null) break
    records += some
    ownBytes = Math.max(ownBytes, process.memoryUsage.rss())
    serverBytes = Math.max(serverBytes, residentBytes(pid))
    await yieldToEventLoop()
  }
  return {
    ownBytes,
    serverBytes,
    records,
    seconds: (performance.now() - began) / 1000,
    ownSeconds: ownSeconds() - own,
    serverSeconds: familySeconds(pid) - server,
  }
}

function printBeside(inLedger: readonly Answer[], inClickHouse: readonly Answer[]): void {
  console.log(
    `\n${'question'.padEnd(28)}${'ledger p50 ms'.padStart(16)}${'ClickHouse'.padStart(12)}${'processor'.padStart(18)}`,
  )
  for (const [index, { name, values }] of inLedger.entries()) {
    const other = inClickHouse[index]?.values ?? []
    const wall = `${(values[0] ?? 0).toFixed(1).padStart(16)}${(other[0] ?? 0).toFixed(1).padStart(12)}`
    const busy = `${(values[2] ?? 0).toFixed(1)} / ${(other[2] ?? 0).toFixed(1)}`.padStart(18)
    const found = values[4] === other[4] ? '' : `  ${values[4]} and ${other[4]} events`
    console.log(`${name.padEnd(28)}${wall}${busy}${found}`)
  }
}

/** Copies all rows so many times, each time behind their positions and before their times, with other ids. */
async function copyRows(
  client: ClickHouseClient,
  ledger: Database,
  { copies, span }: { copies: number; span: number },
): Promise<number> {
  const { next } = await readLogHead(ledger)
  for (let copy = 1; copy <= copies; copy += 1) {
    await client.command({
      query: `INSERT INTO ${recordsTable} SELECT * REPLACE (position + {behind:UInt64} AS position, at - {before:Int64} AS at,
        received_at - {before:Int64} AS received_at, arrayMap(id -> concat({copy:String}, substring(id, 3)), ids) AS ids)
        FROM ${recordsTable} AS r WHERE r.position < {next:UInt64}`,
      query_params: { behind: copy * next, before: copy * span, copy: String(copy).padStart(2, '0'), next },
    })
  }
  // Readers look below the end of the log.
  await ledger.write([{ sql: 'update event_log set next_position = next_position * ?', args: [copies + 1] }])
  return (next - 1) * copies
}

/** What takes room in the table. */
async function sizesOf(client: ClickHouseClient, records: number): Promise<Record<string, number>> {
  const answer = await client.query({
    query: `SELECT name, toFloat64(data_compressed_bytes) AS room FROM system.columns
        WHERE table = '${recordsTable}' AND database = currentDatabase() AND data_compressed_bytes > 0
      UNION ALL SELECT name, toFloat64(data_compressed_bytes) FROM system.data_skipping_indices
        WHERE table = '${recordsTable}' AND database = currentDatabase()
      UNION ALL SELECT 'projection by_chain', toFloat64(sum(bytes_on_disk)) FROM system.projection_parts
        WHERE table = '${recordsTable}' AND active`,
    format: 'JSONEachRow',
  })
  const sizes = await answer.json<{ name: string; room: number }>()
  const largest = sizes.toSorted((one, other) => other.room - one.room)
  return Object.fromEntries(largest.map(({ name, room }) => [name, room / records]))
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      events: { type: 'string', default: '10000000' },
      copies: { type: 'string', default: '0' },
      directory: { type: 'string' },
    },
  })
  const requests = Math.round(Number(values.events) / eventsOfRequest)
  const copies = Number(values.copies)
  const span = month / (copies + 1)
  const directory = values.directory ?? mkdtempSync(join(tmpdir(), 'gatehouse-clickhouse-'))
  mkdirSync(directory, { recursive: true })
  const ledger = await openLedger(directory)
  const state = await openDatabase(join(directory, 'state.db'), directory)
  await migrateState(state)
  const { child, url } = await startServer(join(directory, 'clickhouse'))
  const busyMs = () => (ownSeconds() + familySeconds(child.pid)) * 1000
  try {
    const until = Date.now()
    const sizes = { least: 256, most: 512 }
    const began = performance.now()
    const { ingest, merge } = await fill(ledger, requests, { since: until - span, until, sizes, sums: false })
    const filled = (performance.now() - began) / 1000
    const [size] = await ledger.read<{ bytes: number }>(
      'select (select page_count from pragma_page_count) * (select page_size from pragma_page_size) as bytes',
    )
    printTable('the ledger', {
      requests,
      'requests a second, with making them': requests / filled,
      'ingest, µs of the processor a request': ingest,
      'merge, the same': merge,
      'bytes a request': (size?.bytes ?? 0) / requests,
      'memory, MB': process.memoryUsage.rss() / megabyte,
    })
    const questions = await questionsOf(ledger)
    const inLedger = await measureQuestions(ledger, questions)
    printTable('export from the ledger', await exportAll(ledger))
    printTable('verification of the ledger', await verifyLog({ state, ledger }))
    printTable('charts of the ledger', await chartOfSums(join(directory, 'charts'), busyMs))

    const client = createClient({ url, log: { level: ClickHouseLogLevel.OFF }, request_timeout: 600_000 })
    await client.command({ query: clickhouseSchema })
    const archive = new Archive(client)
    const moved = await moveAll(ledger, archive, child.pid)
    keepLogIn(ledger, movedLog(ledger, archive))
    const answer = await client.query({
      query: `SELECT toFloat64(sum(bytes_on_disk)) AS bytes, toFloat64(count()) AS parts FROM system.parts
        WHERE active AND table = 'gatehouse_events'`,
      format: 'JSONEachRow',
    })
    const [disk] = await answer.json<{ bytes: number; parts: number }>()
    printTable('ClickHouse', {
      'records moved': moved.records,
      'records a second': moved.records / moved.seconds,
      'move, µs of the processor a record': (moved.ownSeconds / moved.records) * 1e6,
      'ClickHouse, the same': (moved.serverSeconds / moved.records) * 1e6,
      'memory here, MB': moved.ownBytes / megabyte,
      'memory of ClickHouse, MB': moved.serverBytes / megabyte,
      'bytes a record': (disk?.bytes ?? 0) / moved.records,
      parts: disk?.parts ?? 0,
    })
    printTable('columns and indices, bytes a record', await sizesOf(client, moved.records))
    printBeside(inLedger, await measureQuestions(ledger, questions, busyMs))
    printTable('export from ClickHouse', await exportAll(ledger, busyMs))
    printTable('verification of ClickHouse', await verifyLog({ state, ledger }, busyMs))
    printTable('charts of ClickHouse', await chartOfClickHouse(client, busyMs))
    if (copies > 0) {
      const before = familySeconds(child.pid)
      const copied = await copyRows(client, ledger, { copies, span })
      printTable('with copies', {
        records: moved.records + copied,
        'ClickHouse, µs of the processor a record': ((familySeconds(child.pid) - before) / copied) * 1e6,
        'memory of ClickHouse, MB': residentBytes(child.pid) / megabyte,
      })
      const ceiling = Number.MAX_SAFE_INTEGER
      const all = questions.map(({ name, queryOf }) => ({
        name,
        queryOf: (round: number) => ({ ...queryOf(round), ceiling }),
      }))
      printBeside(inLedger, await measureQuestions(ledger, all, busyMs))
      printTable('charts of ClickHouse', await chartOfClickHouse(client, busyMs))
    }
    await client.close()
  } finally {
    child.kill()
    await child.exited
    ledger.close()
    state.close()
    if (values.directory === undefined) rmSync(directory, { recursive: true, force: true })
  }
}

await main()

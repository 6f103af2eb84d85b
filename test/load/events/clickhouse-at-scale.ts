/**
 * The log in ClickHouse beside the log in segments of the ledger:
 *
 *   bun test/load/events/clickhouse-at-scale.ts [--events 10000000] [--directory <directory>]
 *
 * A ledger is filled as gateways would, and asked. Then all of it moves to ClickHouse (chdb in a process of its own), and
 * the same is asked again. Processor time is that of both processes together.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { Archive } from '../../../src/events/clickhouse/archive.ts'
import { moveSome } from '../../../src/events/clickhouse/move.ts'
import { movedLog } from '../../../src/events/clickhouse/moved-log.ts'
import { clickhouseSchema } from '../../../src/events/clickhouse/schema.ts'
import { keepLogIn } from '../../../src/events/engine/log-of.ts'
import { silentLog } from '../../../src/lib/log/log.ts'
import { yieldToEventLoop } from '../../../src/lib/yield-to-event-loop.ts'
import type { Database } from '../../../src/store/open.ts'
import { familySeconds } from '../../support/processes.ts'
import { openLedger, printTable } from './events-at-scale.ts'
import { fill } from './scale-ingest.ts'
import { type Answer, exportAll, measureQuestions, questionsOf } from './scale-questions.ts'

/** An outcome with its attempt, and in half of all exchanges a decision (scale-records.ts). */
const eventsOfRequest = 2.5
const days = 7 * 86_400_000

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
  let records = 0
  for (;;) {
    const some = await moveSome(options)
    if (some === null) break
    records += some
    await yieldToEventLoop()
  }
  return {
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

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { events: { type: 'string', default: '10000000' }, directory: { type: 'string' } },
  })
  const requests = Math.round(Number(values.events) / eventsOfRequest)
  const directory = values.directory ?? mkdtempSync(join(tmpdir(), 'gatehouse-clickhouse-'))
  mkdirSync(directory, { recursive: true })
  const ledger = await openLedger(directory)
  const { child, url } = await startServer(join(directory, 'clickhouse'))
  try {
    const until = Date.now()
    const sizes = { least: 256, most: 512 }
    const { ingest, merge } = await fill(ledger, requests, { since: until - days, until, sizes, sums: false })
    const [size] = await ledger.read<{ bytes: number }>(
      'select (select page_count from pragma_page_count) * (select page_size from pragma_page_size) as bytes',
    )
    printTable('the ledger', {
      requests,
      'ingest, µs of the processor a request': ingest,
      'merge, the same': merge,
      'bytes a request': (size?.bytes ?? 0) / requests,
    })
    const questions = await questionsOf(ledger)
    const inLedger = await measureQuestions(ledger, questions)
    printTable('export from the ledger', await exportAll(ledger))

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
      'bytes a record': (disk?.bytes ?? 0) / moved.records,
      parts: disk?.parts ?? 0,
    })
    const busyMs = () => (ownSeconds() + familySeconds(child.pid)) * 1000
    printBeside(inLedger, await measureQuestions(ledger, questions, busyMs))
    printTable('export from ClickHouse', await exportAll(ledger))
    await client.close()
  } finally {
    child.kill()
    await child.exited
    ledger.close()
    if (values.directory === undefined) rmSync(directory, { recursive: true, force: true })
  }
}

await main()

/**
 * How fast a million events go through each kind of sink, with what memory, and how long delivery holds up the rest of
 * its process. The receivers are another process (sink-receiver.ts), which counts what is missing and what came twice.
 * With `--kafka` a broker of yours gets the messages, and nothing is counted there.
 *
 *   bun test/load/events/sinks-at-scale.ts [--requests 400000] [--only http,s3] [--kafka 127.0.0.1:9092]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createRecorder } from '../../../src/events/change.ts'
import { logOf } from '../../../src/events/engine/log-of.ts'
import { eventsOfRecord } from '../../../src/events/log/record-events.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { newId } from '../../../src/lib/ids.ts'
import { silentLog } from '../../../src/lib/log/log.ts'
import { authority } from '../../../src/lib/testing/certificate.ts'
import { readDeliveries } from '../../../src/sinks/delivery/cursor.ts'
import { createSinkRunner } from '../../../src/sinks/delivery/deliver.ts'
import type { SinkConfig, SinkFormat, SinkKindName } from '../../../src/sinks/sink-resource.ts'
import { addSink, setCredentials } from '../../../src/sinks/stored-sink.ts'
import { openDatabase } from '../../../src/store/open.ts'
import { migrateState } from '../../../src/store/schema/migrate.ts'
import { testMasterKey } from '../../../src/store/testing/master-key.ts'
import { openLedger } from './events-at-scale.ts'
import { fill } from './scale-ingest.ts'
import { type Addresses, type Counted, Ids, topic } from './sink-receiver.ts'

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '400000' },
    only: { type: 'string' },
    kafka: { type: 'string' },
    count: { type: 'string' },
  },
})
const megabyte = 1024 * 1024
const masterKey = testMasterKey()

interface Tried {
  kind: SinkKindName
  format: SinkFormat
  url: string
  config?: SinkConfig
  filter?: string
}

async function measure(): Promise<void> {
  const script = join(import.meta.dir, 'sink-receiver.ts')
  const receiver = Bun.spawn([process.execPath, script], { stdout: 'pipe', stderr: 'inherit' })
  const { value: first } = await receiver.stdout.getReader().read()
  const addresses: Addresses = JSON.parse(new TextDecoder().decode(first))
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-sinks-'))
  const ledger = await openLedger(directory)
  const state = await openDatabase(join(directory, 'state.db'), directory)
  await migrateState(state)
  const count = Number(values.requests)
  const now = Date.now()
  await fill(ledger, count, { since: now - 86_400_000, until: now, sizes: { least: 200, most: 512 }, sums: false })
  const counting = Bun.spawn([process.execPath, import.meta.path, '--count', directory], { stdout: 'pipe' })
  const expected: Expected = JSON.parse(await new Response(counting.stdout).text())
  console.log(`${expected.events.messages} events of ${count} records`)
  const { http, syslog } = addresses
  const kafka = values.kafka === undefined ? addresses.kafka : `kafka://${values.kafka}`
  const all: Tried[] = [
    { kind: 'http', format: 'records', url: `${http}/lines` },
    { kind: 'http', format: 'events', url: `${http}/lines` },
    { kind: 'http', format: 'events', url: `${http}/lines`, filter: 'event.verdict != "allow"' },
    { kind: 'http', format: 'ocsf', url: `${http}/ocsf` },
    { kind: 's3', format: 'records', url: http, config: { s3: s3Config } },
    { kind: 'splunk', format: 'events', url: `${http}/splunk` },
    { kind: 'datadog', format: 'events', url: `${http}/datadog` },
    { kind: 'clickhouse', format: 'events', url: `${http}/lines` },
    { kind: 'otlp', format: 'events', url: `${http}/otlp` },
    { kind: 'syslog', format: 'events', url: syslog, config: { ca_certificate: authority } },
    { kind: 'kafka', format: 'events', url: kafka, config: { kafka: { topic, mechanism: 'plain' } } },
  ]
  const only = values.only?.split(',')
  for (const tried of all) {
    if (only !== undefined && !only.includes(tried.kind)) continue
    await deliverTo(tried, { state, ledger, expected, receiver: http })
  }
  receiver.kill()
  ledger.close()
  state.close()
  rmSync(directory, { recursive: true, force: true })
}

const s3Config = { bucket: 'b', region: 'us-east-1', prefix: 'p/', lock_mode: 'compliance', every_seconds: 1 } as const

type Databases = Pick<Parameters<typeof createSinkRunner>[0], 'state' | 'ledger'>

async function deliverTo(
  { kind, format, url, config = {}, filter }: Tried,
  { state, ledger, expected, receiver }: Databases & { expected: Expected; receiver: string },
) {
  const id = newId()
  const row = { id, name: id, kind, url, format, filter: filter ?? null, config: JSON.stringify(config) }
  const credentials = { token: 't', access_key_id: 'a', secret_access_key: 's' }
  await ledger.write([
    ...addSink({ ...row, credentialNames: '[]', enabled: 1, createdAt: 0, version: 1 }, 1),
    ...setCredentials(masterKey, id, credentials, 0),
  ])
  const clock = systemClock
  const runner = createSinkRunner({
    recorder: createRecorder({ state, ledger, announce: () => undefined, clock, log: silentLog }),
    ...{
      state,
      ledger,
      masterKey,
      clock,
      newId,
      log: silentLog,
      fetch,
      host: 'load',
      ledgerTime: async () => Date.now(),
      random: Math.random,
    },
  })
  Bun.gc(true)
  const resident = process.memoryUsage.rss()
  const before = process.cpuUsage()
  const began = performance.now()
  // By the processor time of this thread between two turns of the event loop, whatever else the machine does.
  let [most, longest, last] = [0, 0, threadTime()]
  const watch = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss())
    const now = threadTime()
    longest = Math.max(longest, now - last)
    last = now
  }, 1)
  const delivery = async () => (await readDeliveries(ledger, id))[0]?.delivery
  while (((await delivery())?.position ?? 0) <= expected.records.messages) {
    await runner.round()
    await runner.settled()
    await Bun.sleep(10)
    const { error } = (await delivery()) ?? {}
    if (error) throw new Error(error)
  }
  clearInterval(watch)
  const seconds = (performance.now() - began) / 1000
  const { user, system } = process.cpuUsage(before)
  const { delivered = 0 } = (await delivery()) ?? {}
  await runner.stop()
  await ledger.write([{ sql: 'delete from sinks where id = ?', args: [id] }])
  const counted: Counted = JSON.parse(await (await fetch(`${receiver}/counted`)).text())
  const events = expected.events.messages
  console.log(
    [
      `${kind} ${format}${filter === undefined ? '' : ' filtered'}`.padEnd(24),
      `${delivered} sent in ${seconds.toFixed(1)} s`,
      `${Math.round(events / seconds)} events/s`,
      `${((user + system) / events).toFixed(1)} µs of the processor each`,
      `memory ${Math.round(resident / megabyte)} to ${Math.round(most / megabyte)} MB`,
      `longest hold ${Math.round(longest)} ms`,
      kind === 'kafka' && values.kafka !== undefined
        ? 'not counted'
        : comparison(expected[selectionOf(format, filter)], counted),
    ].join(', '),
  )
}

/** Milliseconds of the processor that this thread has used. */
function threadTime(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** What a sink is to send: all records, all events, or those that are not allowed. */
type Selection = 'records' | 'events' | 'filtered'

/** How many events the log has, and the ids of what is to be sent of them. */
type Expected = Record<Selection, Counted>

const selectionOf = (format: SinkFormat, filter: string | undefined): Selection => {
  if (filter !== undefined) return 'filtered'
  return format === 'records' ? 'records' : 'events'
}

/** Prints what the log holds. A process of its own, so that the memory of a delivery is that of delivery. */
async function countLog(directory: string): Promise<void> {
  const ledger = await openLedger(directory)
  const ids = { records: new Ids(), events: new Ids(), filtered: new Ids() }
  for await (const record of logOf(ledger).chained({ from: 1, before: Number.MAX_SAFE_INTEGER })) {
    ids.records.add(JSON.parse(record.text).event_id)
    for (const { event } of eventsOfRecord(record)) {
      ids.events.add(event.event_id)
      if (event.verdict !== 'allow') ids.filtered.add(event.event_id)
    }
  }
  ledger.close()
  const { records, events, filtered } = ids
  const expected: Expected = { records: records.counted(), events: events.counted(), filtered: filtered.counted() }
  console.log(JSON.stringify(expected))
}

function comparison(sent: Counted, counted: Counted): string {
  const missing = sent.distinct - counted.distinct
  const others = missing === 0 && sent.digest !== counted.digest ? ', others than were sent' : ''
  return `${missing} missing, ${counted.messages - counted.distinct} twice${others}`
}

await (values.count === undefined ? measure() : countLog(values.count))

/**
 * How fast a million events go through each kind of sink, with what memory, and how long delivery holds up the rest of
 * its process. The receivers are another process, which reads everything and keeps nothing. For Kafka, give a broker.
 *
 *   bun test/load/events/sinks-at-scale.ts [--requests 450000] [--only http,s3] [--kafka 127.0.0.1:9092]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createRecorder } from '../../../src/events/change.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { newId } from '../../../src/lib/ids.ts'
import { silentLog } from '../../../src/lib/log/log.ts'
import { readDeliveries } from '../../../src/sinks/delivery/cursor.ts'
import { createSinkRunner } from '../../../src/sinks/delivery/deliver.ts'
import type { SinkConfig, SinkFormat, SinkKindName } from '../../../src/sinks/sink-resource.ts'
import { addSink, setCredentials } from '../../../src/sinks/stored-sink.ts'
import { openDatabase } from '../../../src/store/open.ts'
import { migrateState } from '../../../src/store/schema/migrate.ts'
import { testMasterKey } from '../../../src/store/testing/master-key.ts'
import { openLedger } from './events-at-scale.ts'
import { fill } from './scale-ingest.ts'

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '450000' },
    only: { type: 'string' },
    kafka: { type: 'string' },
    receive: { type: 'boolean', default: false },
  },
})
const megabyte = 1024 * 1024
const masterKey = testMasterKey()

/** Takes bodies by HTTP and lines by TCP; prints the two ports. */
async function receive(): Promise<void> {
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    maxRequestBodySize: 256 * megabyte,
    async fetch(request) {
      await request.arrayBuffer()
      return request.headers.get('content-type') === 'application/json' ? Response.json({}) : new Response()
    },
  })
  const lines = createServer({ allowHalfOpen: true }, (socket) => {
    socket.resume()
    socket.on('end', () => socket.end())
    socket.on('error', () => undefined)
  })
  await new Promise<void>((listening) => lines.listen(0, '127.0.0.1', listening))
  const address = lines.address()
  console.log(JSON.stringify([server.port, typeof address === 'object' ? address?.port : 0]))
  await new Promise(() => undefined)
}

interface Tried {
  kind: SinkKindName
  format: SinkFormat
  url: string
  config?: SinkConfig
  filter?: string
}

async function measure(): Promise<void> {
  const receiver = Bun.spawn([process.execPath, import.meta.path, '--receive'], { stdout: 'pipe', stderr: 'inherit' })
  const { value: first } = await receiver.stdout.getReader().read()
  const [httpPort, linesPort] = JSON.parse(new TextDecoder().decode(first))
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-sinks-'))
  const ledger = await openLedger(directory)
  const state = await openDatabase(join(directory, 'state.db'), directory)
  await migrateState(state)
  const count = Number(values.requests)
  const now = Date.now()
  await fill(ledger, count, { since: now - 86_400_000, until: now, sizes: { least: 200, most: 512 }, sums: false })
  const http = `http://127.0.0.1:${httpPort}`
  const all: Tried[] = [
    { kind: 'http', format: 'records', url: `${http}/in` },
    { kind: 'http', format: 'events', url: `${http}/in` },
    { kind: 'http', format: 'events', url: `${http}/in`, filter: 'event.verdict != "allow"' },
    { kind: 'http', format: 'ocsf', url: `${http}/in` },
    { kind: 's3', format: 'records', url: http, config: { s3: s3Config } },
    { kind: 'splunk', format: 'events', url: `${http}/in` },
    { kind: 'datadog', format: 'events', url: `${http}/in` },
    { kind: 'clickhouse', format: 'events', url: http },
    { kind: 'otlp', format: 'events', url: http },
    { kind: 'syslog', format: 'events', url: `tcp://127.0.0.1:${linesPort}` },
    ...(values.kafka === undefined
      ? []
      : [{ kind: 'kafka', format: 'events', url: `kafka://${values.kafka}`, config: { kafka: kafkaConfig } } as const]),
  ]
  const only = values.only?.split(',')
  for (const tried of all) {
    if (only === undefined || only.includes(tried.kind)) await deliverTo(tried, { state, ledger, count })
  }
  receiver.kill()
  ledger.close()
  state.close()
  rmSync(directory, { recursive: true, force: true })
}

const s3Config = { bucket: 'b', region: 'us-east-1', prefix: 'p/', lock_mode: 'compliance', every_seconds: 1 } as const
const kafkaConfig = { topic: 'gatehouse', mechanism: 'plain' } as const

type Databases = Pick<Parameters<typeof createSinkRunner>[0], 'state' | 'ledger'>

async function deliverTo(
  { kind, format, url, config = {}, filter }: Tried,
  { state, ledger, count }: Databases & { count: number },
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
  while (((await delivery())?.position ?? 0) <= count) {
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
  const events = format === 'records' || filter !== undefined ? count * eventsOfRecord : delivered
  console.log(
    [
      `${kind} ${format}${filter === undefined ? '' : ' filtered'}`.padEnd(24),
      `${delivered} sent in ${seconds.toFixed(1)} s`,
      `${Math.round(events / seconds)} events/s`,
      `${((user + system) / events).toFixed(1)} µs of the processor each`,
      `memory ${Math.round(resident / megabyte)} to ${Math.round(most / megabyte)} MB`,
      `longest hold ${Math.round(longest)} ms`,
    ].join(', '),
  )
}

/** Milliseconds of the processor that this thread has used. */
function threadTime(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** About: an exchange with its attempt, and now and then a decision. */
const eventsOfRecord = 2.52

await (values.receive ? receive() : measure())

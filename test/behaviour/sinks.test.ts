import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { isProofLine } from '../../src/sinks/formats/proof.ts'
import { FakeS3 } from '../../src/sinks/testing/fake-s3.ts'
import { api, chat, createToken, expectAnswer } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { type Gatehouse, operate, startGatehouse, temporaryDirectory } from '../support/harness.ts'
import { descendantsOf, isAlive, signal } from '../support/processes.ts'
import { eventsInLedger } from '../support/recorded.ts'

setDefaultTimeout(180_000)

const secret = 'secret'
let directory: string
let gatehouse: Gatehouse
let token: string
let bucket: FakeS3
beforeEach(async () => {
  directory = temporaryDirectory()
  gatehouse = await startGatehouse({ dataDirectory: join(directory, 'data') })
  token = (await createToken(gatehouse)).token_value
  bucket = new FakeS3('audit', secret)
})
afterEach(async () => {
  await gatehouse?.stop()
  await bucket.stop()
  rmSync(directory, { recursive: true, force: true })
})

/** A receiver of lines that is killed and started again on its port; what it has acknowledged, or only read, stays. */
class Collector {
  readonly lines: string[] = []
  /** Reads the next bodies and dies before it answers. */
  diesAfterReading = false
  #server = this.#serve(0)

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}/in`
  }

  #serve(port: number): Bun.Server<undefined> {
    return Bun.serve({
      port,
      hostname: '127.0.0.1',
      fetch: async (request) => {
        const text = Buffer.from(Bun.gunzipSync(await request.arrayBuffer())).toString()
        this.lines.push(...text.split('\n').filter((line) => line !== ''))
        if (!this.diesAfterReading) return new Response()
        await this.stop()
        return new Response(null, { status: 500 })
      },
    })
  }

  stop = (): Promise<void> => this.#server.stop(true)

  async restart(): Promise<void> {
    const { port } = this.#server
    this.diesAfterReading = false
    await this.stop()
    this.#server = this.#serve(port ?? 0)
  }
}

const sinkSchema = z.looseObject({ id: z.string(), lag_records: z.number(), position: z.number().optional() })

const addSink = async (fields: object) =>
  expectAnswer(await api(gatehouse, '/v1/sinks', { body: { start: 'beginning', ...fields } }), 201, sinkSchema)

const lagOf = async (id: string): Promise<number> =>
  expectAnswer(await api(gatehouse, `/v1/sinks/${id}`), 200, sinkSchema).lag_records

/** Kills every process of the installation at once, and starts it again. */
async function killEverything(): Promise<void> {
  const { dataDirectory, adminToken, supervisorPid } = gatehouse
  const pids = [supervisorPid, ...descendantsOf(supervisorPid)]
  for (const pid of pids) signal(pid, 'SIGKILL')
  await until('all of it is gone', () => !pids.some(isAlive))
  gatehouse = await startGatehouse({ dataDirectory, adminToken })
}

/** Sends requests on four connections until it is stopped; failures while everything is down are none of its concern. */
function startLoad(): { stop(): Promise<void> } {
  let going = true
  const loops = Array.from({ length: 4 }, async () => {
    while (going) {
      await chat(gatehouse, { token, model: 'simulator/echo' })
        .then((answer) => answer.text())
        .catch(() => undefined)
      await Bun.sleep(20)
    }
  })
  return {
    async stop() {
      going = false
      await Promise.all(loops)
    },
  }
}

test('after kills of everything during delivery nothing is missing in the archives, and what is there twice is so by id', async () => {
  const collector = new Collector()
  const lines = await addSink({ name: 'lines', kind: 'http', url: collector.url, format: 'records' })
  const objects = await addSink({
    ...{ name: 'objects', kind: 's3', url: bucket.url, s3: { bucket: 'audit', every_seconds: 1 } },
    credentials: { access_key_id: 'id', secret_access_key: secret },
  })
  const load = startLoad()
  for (let kill = 0; kill < 4; kill += 1) {
    const before = collector.lines.length
    await until('more was delivered', () => collector.lines.length >= before + 50, { withinMs: 60_000 })
    // Every other time in the middle of a parcel that was read and not acknowledged.
    collector.diesAfterReading = kill % 2 === 1
    if (collector.diesAfterReading) {
      const read = collector.lines.length
      await until('a parcel was read', () => collector.lines.length > read, { withinMs: 60_000 })
    }
    await killEverything()
    await collector.restart()
  }
  await load.stop()
  const lags = async () => (await lagOf(lines.id)) + (await lagOf(objects.id))
  await until('the sinks have everything', async () => (await lags()) === 0, { withinMs: 90_000 })

  const records = collector.lines.filter((line) => !isProofLine(line))
  const ids = records.map((line) => z.object({ event_id: z.string() }).parse(JSON.parse(line)).event_id)
  const recorded = eventsInLedger(gatehouse)
  const expected = recorded
    .filter(({ event_type }) => event_type !== 'gateway.provider.attempt' && event_type !== 'decision')
    .map(({ event_id }) => event_id)
  expect(expected.filter((id) => !new Set(ids).has(id))).toEqual([])
  expect(ids.length).toBeGreaterThan(new Set(ids).size)
  const byId = Map.groupBy(records, (line) => /"event_id":"([^"]+)"/.exec(line)?.[1] ?? '')
  expect([...byId.values()].filter((same) => new Set(same).size > 1)).toEqual([])

  const file = join(directory, 'collected.ndjson')
  writeFileSync(file, `${collector.lines.join('\n')}\n`)
  const bySink = await operate(gatehouse, 'sink', 'verify', objects.id)
  expect(bySink).toMatchObject({ code: 0, stdout: expect.stringContaining(' 0 findings') })
  const byFile = await operate(gatehouse, 'sink', 'verify', '--from', file)
  expect(byFile).toMatchObject({ code: 0, stdout: expect.stringContaining(' 0 findings') })
  const [key = ''] = [...bucket.objects.keys()].filter((name) => name.endsWith('.zst'))
  bucket.objects.delete(key)
  expect((await operate(gatehouse, 'sink', 'verify', objects.id)).code).toBe(1)
  console.info(`four kills: ${new Set(ids).size} records, ${ids.length - new Set(ids).size} of them twice`)
  await collector.stop()
})

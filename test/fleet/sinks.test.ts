/** Sinks with two control planes on one primary, each killed in turn: nothing is missing, and what is twice is so by id. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { isProofLine } from '../../src/sinks/formats/proof.ts'
import { FakeS3 } from '../../src/sinks/testing/fake-s3.ts'
import { api, chat, createToken, expectAnswer } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { run } from '../support/harness.ts'
import { type FleetUnderTest, startFleet } from './fleet.ts'

setDefaultTimeout(300_000)

const secret = 'secret'
const lines: string[] = []
let fleet: FleetUnderTest
let bucket: FakeS3
let collector: Bun.Server<undefined>
beforeAll(async () => {
  fleet = await startFleet({ gateways: 2 })
  bucket = new FakeS3('audit', secret)
  collector = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const text = Buffer.from(Bun.gunzipSync(await request.arrayBuffer())).toString()
      lines.push(...text.split('\n').filter((line) => line !== '' && !isProofLine(line)))
      return new Response()
    },
  })
}, 240_000)
afterAll(async () => {
  await collector?.stop(true)
  await bucket?.stop()
  await fleet?.[Symbol.asyncDispose]()
})

const sinkSchema = z.looseObject({ id: z.string(), lag_records: z.number(), error: z.string().nullable() })
const readSink = async (id: string) => expectAnswer(await api(fleet.planes[1], `/v1/sinks/${id}`), 200, sinkSchema)
const addSink = async (fields: object) =>
  expectAnswer(await api(fleet.planes[0], '/v1/sinks', { body: { start: 'beginning', ...fields } }), 201, sinkSchema).id

/** Sends requests to both gateways until it is stopped, one in `pauseMs` each. */
function startLoad(token: string) {
  let going = true
  let pauseMs = 20
  const answered: string[] = []
  const loops = fleet.gateways.map(async (gateway, worker) => {
    for (let number = 0; going; number += 1) {
      const requestId = `request-${worker}-${number}`
      const answer = await chat(gateway, { token, model: 'simulator/echo', requestId }).catch(() => null)
      await answer?.text()
      if (answer?.status === 200) answered.push(requestId)
      await Bun.sleep(pauseMs)
    }
  })
  return {
    pause(milliseconds: number) {
      pauseMs = milliseconds
    },
    /** Gives the ids of the requests that were answered. */
    async stop() {
      going = false
      await Promise.all(loops)
      return answered
    },
  }
}

test('control planes that are killed in turn deliver everything, and what arrives twice is the same by id', async () => {
  const http = await addSink({
    ...{ name: 'lines', kind: 'http', url: `http://127.0.0.1:${collector.port}/in`, format: 'records' },
  })
  const s3 = await addSink({
    ...{ name: 'objects', kind: 's3', url: bucket.url, s3: { bucket: 'audit', every_seconds: 1 } },
    credentials: { access_key_id: 'id', secret_access_key: secret },
  })
  const { token_value: token } = await createToken(fleet.planes[0])
  const load = startLoad(token)
  for (let kill = 0; kill < 4; kill += 1) {
    const before = lines.length
    await until('more was delivered', () => lines.length >= before + 40, { withinMs: 60_000 })
    const killed = fleet.planes[kill % 2 === 0 ? 0 : 1]
    await killed.kill()
    // One stays away for so long that the other one takes its sinks over.
    if (kill === 2) {
      const then = lines.length
      load.pause(500)
      await until('the other one delivers', () => lines.length > then + 10, { withinMs: 150_000 })
      load.pause(20)
    }
    await killed.restart()
  }
  const answered = await load.stop()
  await until(
    'the sinks have everything',
    async () => (await readSink(http)).lag_records + (await readSink(s3)).lag_records === 0,
    { withinMs: 120_000 },
  )
  const missing = () => {
    const delivered = new Set(lines.map((line) => /"request_id":"([^"]+)"/.exec(line)?.[1]))
    return answered.filter((id) => !delivered.has(id))
  }
  // A gateway ships its last outcomes a moment later.
  await until('the last outcomes are delivered', () => missing().length === 0, { withinMs: 60_000 })
  const byId = Map.groupBy(lines, (each) => /"event_id":"([^"]+)"/.exec(each)?.[1] ?? each)
  expect([...byId.values()].filter((same) => new Set(same).size > 1)).toEqual([])
  const { baseUrl, adminToken } = fleet.planes[1]
  const env = { SERVICE_API_URL: baseUrl, SERVICE_API_TOKEN: adminToken }
  const verified = await run(['sink', 'verify', s3], { env })
  expect(verified).toMatchObject({ code: 0, stdout: expect.stringContaining(' 0 findings') })
  console.info(
    `four kills: ${byId.size} records, ${lines.length - byId.size} of them twice, ${answered.length} requests`,
  )
})

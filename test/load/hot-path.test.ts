/**
 * What a request may cost, as the number of objects that the gateway makes for it: unlike time, it is the same on a
 * busy machine. The gateway is the real one, with a budget and a number of requests to reserve, run from its sources so
 * that its heap can be counted. Parsing a body once more, or checking it by a schema, adds objects for each message of
 * its conversation. Whoever makes the path cheaper lowers the limits here; whoever has a reason raises them.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { repository } from '../executable.ts'
import { chatAnswer } from '../fakes/chat.ts'
import { freePort } from '../free-port.ts'
import { cleanEnvironment, type Gatehouse, startGatehouse } from '../harness.ts'
import { environmentOf } from '../processes.ts'
import { answers, chatTarget, makeChain, makeLimitedToken, priceModel } from './everything-on.ts'
import { benchModel, requestBody, requestHeaders, type Target } from './target.ts'

setDefaultTimeout(60_000)

const answer = chatAnswer({ model: benchModel })
const whole = { status: 200, body: answer.toString() }
const upstream = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    await request.arrayBuffer()
    return new Response(answer, { headers: { 'content-type': 'application/json' } })
  },
})
let gatehouse: Gatehouse
let child: Bun.Subprocess
let plain: Target
let policed: Target
let countUrl: string

beforeAll(async () => {
  gatehouse = await startGatehouse({ upstream: { baseUrl: `${upstream.url.origin}/v1` } })
  await priceModel(gatehouse)
  const tokens = {
    plain: await makeLimitedToken(gatehouse),
    policed: await makeLimitedToken(gatehouse, { policy_ids: await makeChain(gatehouse, { tokens: [] }) }),
  }
  const [gatewayPort, countPort] = [await freePort(), await freePort()]
  const state = join(gatehouse.dataDirectory, 'state.db')
  const program = [join(repository, 'cli/main.ts'), 'gateway', '--state-file', state]
  child = Bun.spawn([process.execPath, '--preload', join(import.meta.dir, 'allocation-count.ts'), ...program], {
    env: cleanEnvironment({
      BUN_JSC_useGC: '0',
      // Optimised code makes fewer objects, from when on depends on the machine.
      BUN_JSC_useDFGJIT: '0',
      COUNT_PORT: String(countPort),
      SERVICE_API_URL: gatehouse.baseUrl,
      SERVICE_API_TOKEN: environmentOf(gatehouse.gatewayPid(), 'SERVICE_API_TOKEN') ?? '',
      SERVICE_DATA: join(gatehouse.dataDirectory, 'counted'),
      SERVICE_GATEWAY_LISTEN: `127.0.0.1:${gatewayPort}`,
    }),
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'inherit',
  })
  countUrl = `http://127.0.0.1:${countPort}`
  plain = chatTarget(`http://127.0.0.1:${gatewayPort}`, tokens.plain)
  policed = { ...plain, token: tokens.policed }
  await answers(plain)
  await answers(policed)
}, 240_000)

afterAll(async () => {
  child?.kill()
  await gatehouse?.stop()
  await upstream.stop(true)
})

const count = async (): Promise<number> => Number(await (await fetch(countUrl)).json())

interface Sent {
  to: Target
  messages: number
  requests: number
}

/** Objects made for one request of a conversation this long. */
async function objectsFor({ to, messages, requests }: Sent): Promise<number> {
  const init = { method: 'POST', headers: requestHeaders(to), body: requestBody(false, messages) }
  const before = await count()
  for (let sent = 0; sent < requests; sent++) {
    const answered = await fetch(to.url, init)
    expect({ status: answered.status, body: await answered.text() }).toEqual(whole)
  }
  return ((await count()) - before) / requests
}

/** The least of some rounds, after a first one: what else the process does meanwhile counts too. */
async function leastObjectsFor(sent: Sent): Promise<number> {
  await objectsFor(sent)
  return Math.min(await objectsFor(sent), await objectsFor(sent), await objectsFor(sent))
}

test('without policies a request makes some 600 objects, and 3 for each further message: its body is parsed once', async () => {
  const one = await leastObjectsFor({ to: plain, messages: 1, requests: 50 })
  const eachMessage = ((await leastObjectsFor({ to: plain, messages: 41, requests: 50 })) - one) / 40
  expect(one).toBeLessThan(620)
  expect(eachMessage).toBeLessThan(4)
})

test('ten policies, of which one scans 400 terms, add some 5000 objects', async () => {
  expect(await leastObjectsFor({ to: policed, messages: 1, requests: 10 })).toBeLessThan(5850)
})

/**
 * What a request may cost, as the number of objects that the gateway makes for it: unlike time, it is the same on a
 * busy machine. The gateway is the real one, with a budget and a number of requests to reserve, run from its sources so
 * that its heap can be counted. Parsing a body once more, or checking it by a schema, adds objects for each message of
 * its conversation. Whoever makes the path cheaper lowers the limits here; whoever has a reason raises them.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { chatAnswer } from '../fakes/chat.ts'
import { freePort } from '../free-port.ts'
import { type Gatehouse, startGatehouse } from '../harness.ts'
import { answers, chatTarget, makeChain, makeLimitedToken, priceModel } from './everything-on.ts'
import { startFromSources } from './source-gateway.ts'
import { benchModel, requestBody, requestHeaders, type Target } from './target.ts'

setDefaultTimeout(60_000)

const answer = chatAnswer({ model: benchModel })
const whole = answer.toString()
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
  const countPort = await freePort()
  const started = await startFromSources(gatehouse, ['--preload', join(import.meta.dir, 'allocation-count.ts')], {
    BUN_JSC_useGC: '0',
    // Optimised code makes fewer objects, from when on depends on the machine.
    BUN_JSC_useDFGJIT: '0',
    COUNT_PORT: String(countPort),
  })
  child = started.child
  countUrl = `http://127.0.0.1:${countPort}`
  plain = chatTarget(started.url, tokens.plain)
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

const rounds = 8
const requestsOfRound = 5

/**
 * Objects made for one request of a conversation of so many messages: the least of many short rounds, since what the
 * process does besides, by the clock, counts too, and more of it the slower the machine.
 */
async function objectsFor(to: Target, messages: number): Promise<number> {
  const init = { method: 'POST', headers: requestHeaders(to), body: requestBody(false, messages) }
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round <= rounds; round++) {
    const before = await count()
    let answered = 0
    for (let sent = 0; sent < requestsOfRound; sent++) {
      const answer = await fetch(to.url, init)
      if ((await answer.text()) === whole) answered += 1
    }
    const objects = ((await count()) - before) / requestsOfRound
    // On a machine that is too busy a limit may not be granted in time; the first round is for warming up.
    if (round > 0 && answered === requestsOfRound) least = Math.min(least, objects)
  }
  return least
}

test('without policies a request makes some 360 objects, and 1 for each further message: its body is parsed once', async () => {
  const one = await objectsFor(plain, 1)
  const eachMessage = ((await objectsFor(plain, 41)) - one) / 40
  // 50 more where each request is so slow that its record is written and shipped alone.
  expect(one).toBeLessThan(450)
  expect(eachMessage).toBeLessThan(2)
})

test('ten policies, of which one scans 400 terms, add some 110 objects, and 12 for each further message', async () => {
  const one = await objectsFor(policed, 1)
  const eachMessage = ((await objectsFor(policed, 41)) - one) / 40
  expect(one).toBeLessThan(570)
  expect(eachMessage).toBeLessThan(20)
})

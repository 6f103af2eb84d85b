/**
 * What a request may cost, as the number of objects that the gateway makes for it: unlike time, it is the same on a
 * busy machine. The gateway is the real one, with a budget and a number of requests to reserve, run from its sources so
 * that its heap can be counted. Parsing a body once more, or checking it by a schema, adds objects for each message of
 * its conversation. Whoever makes the path cheaper lowers the limits here; whoever has a reason raises them.
 *
 * And how long they are held: what outlives its request is marked again in each collection, during which all wait.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { chatAnswer } from '../../fakes/chat.ts'
import { freePort } from '../../support/free-port.ts'
import { type Gatehouse, startGatehouse } from '../../support/harness.ts'
import { answers, chatTarget, makeChain, makeLimitedToken, priceModel } from '../rig/everything-on.ts'
import { type SourceGateway, startFromSources } from '../rig/source-gateway.ts'
import { benchModel, requestBody, requestHeaders, type Target } from '../rig/target.ts'

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
let plain: Target
let policed: Target
let counted: Counted

beforeAll(async () => {
  gatehouse = await startGatehouse({ upstream: { baseUrl: `${upstream.url.origin}/v1` } })
  await priceModel(gatehouse)
  const tokens = {
    plain: await makeLimitedToken(gatehouse),
    policed: await makeLimitedToken(gatehouse, { policy_ids: await makeChain(gatehouse, { tokens: [] }) }),
  }
  counted = await startCounted({
    BUN_JSC_useGC: '0',
    // Optimised code makes fewer objects, from when on depends on the machine.
    BUN_JSC_useDFGJIT: '0',
  })
  plain = chatTarget(counted.url, tokens.plain)
  policed = { ...plain, token: tokens.policed }
  await answers(plain)
  await answers(policed)
}, 240_000)

afterAll(async () => {
  await counted?.[Symbol.asyncDispose]()
  await gatehouse?.stop()
  await upstream.stop(true)
})

interface Counted extends SourceGateway {
  /** Where it says how many objects it has. */
  countUrl: string
}

async function startCounted(environment: Readonly<Record<string, string>>): Promise<Counted> {
  const port = String(await freePort())
  const preload = ['--preload', join(import.meta.dir, 'allocation-count.ts')]
  const started = await startFromSources(gatehouse, preload, { ...environment, COUNT_PORT: port })
  return { ...started, countUrl: `http://127.0.0.1:${port}` }
}

const numberAt = async (url: string): Promise<number> => Number(await (await fetch(url)).json())
const count = () => numberAt(counted.countUrl)

const rounds = 16
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

test('makes about 385 objects for a request without policies, plus 1 for each further message', async () => {
  const one = await objectsFor(plain, 1)
  const eachMessage = ((await objectsFor(plain, 41)) - one) / 40
  // 50 more where each request is so slow that its record is written and shipped alone.
  expect(one).toBeLessThan(450)
  expect(eachMessage).toBeLessThan(2)
})

test('makes about 120 more objects for ten policies, one with 400 terms, plus 12 for each further message', async () => {
  const one = await objectsFor(policed, 1)
  const eachMessage = ((await objectsFor(policed, 41)) - one) / 40
  expect(one).toBeLessThan(620)
  expect(eachMessage).toBeLessThan(20)
})

test('retains no later exchange although an earlier one ran during a garbage collection', async () => {
  await using held = await startCounted({})
  const { url, countUrl } = held
  const to = chatTarget(url, plain.token)
  await answers(to)
  const init = { method: 'POST', headers: requestHeaders(to), body: requestBody(false) }
  const before = await numberAt(`${countUrl}/exchanges`)
  let left = 1000
  const caller = async () => {
    while (left-- > 0) {
      // What runs during a collection outlives it: what comes after must not hang on that.
      if (left % 50 === 0) await numberAt(`${countUrl}/exchanges`)
      await (await fetch(to.url, init)).text()
    }
  }
  await Promise.all(Array.from({ length: 8 }, caller))
  // Those that run during the twenty collections, some 130, are held until all is collected.
  expect((await numberAt(`${countUrl}/exchanges`)) - before).toBeLessThan(400)
})

/**
 * What a request may cost, as the number of objects that the gateway makes for it: unlike time, it is the same on a
 * busy machine. The gateway is the real one, with a budget and a number of requests to reserve, run from its sources so
 * that its heap can be counted. Parsing a body once more, or checking it by a schema, adds objects for each message of
 * its conversation. Whoever makes the path cheaper lowers the limits here; whoever has a reason raises them.
 *
 * And how long they are held: what outlives its request is marked again in each collection, during which all wait.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { chatAnswer } from '../../fakes/chat.ts'
import { type Gatehouse, startGatehouse } from '../../support/harness.ts'
import { answers, chatTarget, makeChain, makeLimitedToken, priceModel } from '../rig/everything-on.ts'
import { benchModel, requestBody, requestHeaders, type Target } from '../rig/target.ts'
import { type Counted, objectsFor, startCounted } from './allocations.ts'

// Objects are counted, not time: a busy machine may take long.
setDefaultTimeout(240_000)

const answer = chatAnswer({ model: benchModel })
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
  // As in service: a slow control plane would make the gateway ask it more often.
  const env = { BUN_JSC_useDFGJIT: '1' }
  gatehouse = await startGatehouse({ upstream: { baseUrl: `${upstream.url.origin}/v1` }, env })
  await priceModel(gatehouse)
  const tokens = {
    plain: await makeLimitedToken(gatehouse),
    policed: await makeLimitedToken(gatehouse, { policy_ids: await makeChain(gatehouse, { tokens: [] }) }),
  }
  counted = await startCounted(gatehouse)
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

test('makes about 400 objects for a request without policies, plus 1 for each further message', async () => {
  const one = await objectsFor(counted, plain, 1)
  const eachMessage = ((await objectsFor(counted, plain, 41)) - one) / 40
  // 50 more where each request is so slow that its record is written and shipped alone.
  expect(one).toBeLessThan(475)
  expect(eachMessage).toBeLessThan(2)
})

test('makes about 120 more objects for ten policies, one with 400 terms, plus 12 for each further message', async () => {
  const one = await objectsFor(counted, policed, 1)
  const eachMessage = ((await objectsFor(counted, policed, 41)) - one) / 40
  // 50 more, as above.
  expect(one).toBeLessThan(700)
  expect(eachMessage).toBeLessThan(20)
})

test('retains no later exchange although an earlier one ran during a garbage collection', async () => {
  await using held = await startCounted(gatehouse, {})
  const to = chatTarget(held.url, plain.token)
  await answers(to)
  const init = { method: 'POST', headers: requestHeaders(to), body: requestBody(false) }
  const before = await held.exchanges()
  let left = 1000
  const caller = async () => {
    while (left-- > 0) {
      // What runs during a collection outlives it: what comes after must not hang on that.
      if (left % 50 === 0) await held.exchanges()
      await (await fetch(to.url, init)).text()
    }
  }
  await Promise.all(Array.from({ length: 8 }, caller))
  // Those that run during the twenty collections, some 130, are held until all is collected.
  expect((await held.exchanges()) - before).toBeLessThan(400)
})

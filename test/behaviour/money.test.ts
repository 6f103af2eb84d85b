/**
 * Budgets on many gateways at once, from outside: by JSON, by stream and by WebSocket, what is spent never passes the
 * budget by a nano-dollar, and what is left at the end could not pay for one more request.
 */
import { afterEach, beforeAll, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { createToken } from '../client.ts'
import { until } from '../eventually.ts'
import { executable } from '../executable.ts'
import { chatAnswer, chatStream } from '../fakes/chat.ts'
import { type Call, type FakeUpstream, jsonReply, startFakeUpstream, streamReply } from '../fakes/upstream.ts'
import { type Gatehouse, startGatehouse } from '../harness.ts'
import { type MoreGateway, startMoreGateway } from '../more-gateways.ts'
import { signal } from '../processes.ts'
import { sumsOf } from '../recorded.ts'

setDefaultTimeout(90_000)

let upstream: FakeUpstream
let gatehouse: Gatehouse
let more: MoreGateway[]

beforeAll(() => executable().then(() => undefined), 240_000)
beforeEach(async () => {
  upstream = await startFakeUpstream()
  gatehouse = await startGatehouse({ upstream })
  more = await Promise.all(['second', 'third'].map((name) => startMoreGateway(gatehouse, name)))
})
afterEach(async () => {
  for (const gateway of more) await gateway[Symbol.asyncDispose]()
  await gatehouse.stop()
  await upstream.close()
})

const model = 'gpt-4o-mini'
/** Nano-dollars a token, by the embedded table. */
const [inputPrice, outputPrice] = [150, 600]
const outputTokens = 10
const path = '/v1/chat/completions'

/** All ways ask with as many bytes, so that each costs the same at most. */
const question = (stream: boolean): string =>
  JSON.stringify({
    model,
    max_tokens: outputTokens,
    stream,
    messages: [{ role: 'user', content: stream ? 'Is it ?' : 'Is it?' }],
  })
/** A token for each byte, and the allowances of a request and of a message. */
const inputTokens = question(true).length + 64 + 16
const worstCase = inputTokens * inputPrice + outputTokens * outputPrice

/** The upstream says that it used so many tokens. */
const using = (prompt_tokens: number, completion_tokens: number) => (call: Call) => {
  const usage = { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens }
  const streamed = call.body.toString().includes('"stream":true')
  return { ...(streamed ? streamReply(chatStream({ usage })) : jsonReply(chatAnswer({ usage }))), headersAfterMs: 30 }
}

const addresses = () => [gatehouse.gatewayUrl, ...more.map(({ url }) => url)]

async function byHttp(url: string, token: string, stream: boolean): Promise<number> {
  try {
    const answer = await fetch(url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: question(stream),
    })
    await answer.text()
    return answer.status
  } catch {
    // A gateway that is killed answers nobody.
    return 0
  }
}

const errorFrame = z.looseObject({ type: z.literal('error'), status: z.number() })

function byWebSocket(url: string, token: string): Promise<number> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}${path}/ws`, {
    headers: { authorization: `Bearer ${token}` },
  })
  return new Promise((resolve) => {
    const end = (status: number) => {
      resolve(status)
      socket.close()
    }
    socket.addEventListener('open', () => socket.send(question(true)))
    socket.addEventListener('message', ({ data }) => {
      if (data === '[DONE]') return end(200)
      const refused = errorFrame.safeParse(JSON.parse(String(data)))
      if (refused.success) end(refused.data.status)
    })
    socket.addEventListener('close', () => end(0))
  })
}

/** All at once, to all gateways in turn, in all ways; gives the statuses, 0 where the connection broke. */
const sendMany = (token: string, count: number): Promise<number[]> =>
  Promise.all(
    Array.from({ length: count }, (_, index) => {
      const url = addresses()[index % 3] ?? ''
      const way = Math.floor(index / 3) % 3
      return way === 2 ? byWebSocket(url, token) : byHttp(url, token, way === 1)
    }),
  )

const count = (statuses: readonly number[], status: number): number => statuses.filter((each) => each === status).length

test('of 500 requests at once on three gateways a budget that pays for exactly 100 accepts exactly 100', async () => {
  upstream.when(model, using(inputTokens, outputTokens))
  const budget = 100 * worstCase
  const token = await createToken(gatehouse, { max_budget: budget / 1e9 })
  const statuses = await sendMany(token.token_value, 500)
  expect(count(statuses, 200)).toBe(100)
  // A busy machine may not take in so many connections at once; whoever was heard and not accepted was refused.
  expect(new Set(statuses).difference(new Set([0, 200, 402]))).toEqual(new Set())
  expect(upstream.calls).toHaveLength(100)
  const account = `token/${token.id}/money`
  await until('all is settled and given back', () =>
    Bun.deepEquals(sumsOf(gatehouse, account), { settled: budget, outstanding: 0 }),
  )
})

test('where requests cost less than they might, more are accepted, and what is left cannot pay for another', async () => {
  upstream.when(model, using(70, 4))
  const budget = 30 * worstCase + 77
  const token = await createToken(gatehouse, { max_budget: budget / 1e9 })
  const statuses = await sendMany(token.token_value, 300)
  expect(new Set(statuses).difference(new Set([0, 200, 402]))).toEqual(new Set())
  const account = `token/${token.id}/money`
  const atRest = () => until('all is given back', () => sumsOf(gatehouse, account).outstanding === 0)
  await atRest()
  // What was held when others were refused is there for those who ask again.
  let accepted = count(statuses, 200)
  for (let status = 200; status === 200; ) {
    status = await byHttp(gatehouse.gatewayUrl, token.token_value, false)
    if (status === 200) accepted++
    await atRest()
  }
  const { settled } = sumsOf(gatehouse, account)
  expect(settled).toBe(accepted * (70 * inputPrice + 4 * outputPrice))
  expect(accepted).toBeGreaterThan(30)
  expect(budget - settled).toBeGreaterThanOrEqual(0)
  expect(budget - settled).toBeLessThan(worstCase)
})

test('kills of gateways and of the control plane in the middle of it lose no nano-dollar and spend none twice', async () => {
  upstream.when(model, using(inputTokens, outputTokens))
  const budget = 60 * worstCase
  const token = await createToken(gatehouse, { max_budget: budget / 1e9 })
  const first = sendMany(token.token_value, 45)
  await until('some are running', () => upstream.calls.length > 8)
  const restarted = more[0]?.restart()
  signal(gatehouse.controlPlanePid(), 'SIGKILL')
  await Promise.all([first, restarted])
  const account = `token/${token.id}/money`
  const atRest = () =>
    until('all is given back', () => sumsOf(gatehouse, account).outstanding === 0, { withinMs: 20_000 })
  await until('something is settled', () => sumsOf(gatehouse, account).settled > 0, { withinMs: 20_000 })
  await atRest()
  await sendMany(token.token_value, 240)
  await until('all is settled', () => sumsOf(gatehouse, account).settled === budget, { withinMs: 20_000 })
  await atRest()
  expect(upstream.calls.length).toBeLessThanOrEqual(60)
})

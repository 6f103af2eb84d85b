/** Charges beyond the list price: remembered for each provider and model, through restarts, until an operator forgets them. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { chatAnswer } from '../fakes/chat.ts'
import { type FakeUpstream, jsonReply, startFakeUpstream } from '../fakes/upstream.ts'
import { api, createToken, expectAnswer } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { type Gatehouse, operate, startGatehouse, temporaryDirectory } from '../support/harness.ts'
import { descendantsOf, isAlive, signal } from '../support/processes.ts'

setDefaultTimeout(120_000)

let upstream: FakeUpstream
let gatehouse: Gatehouse
const directory = temporaryDirectory()
beforeAll(async () => {
  upstream = await startFakeUpstream()
  gatehouse = await startGatehouse({ upstream, dataDirectory: join(directory, 'data') })
}, 240_000)
afterAll(async () => {
  await gatehouse?.stop()
  await upstream?.close()
  rmSync(directory, { recursive: true, force: true })
})

const model = 'gpt-4.1-mini'
const other = 'gpt-4.1-nano'
/** More than a request costs by its list price, less than with the excess. */
const small = 0.02

async function ask(token: string, of = model) {
  const answer = await fetch(`${gatehouse.gatewayUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: of, max_tokens: 20, messages: [{ role: 'user', content: 'hello' }] }),
  })
  return { status: answer.status, text: await answer.text() }
}
const tokenOf = async (max_budget: number) => (await createToken(gatehouse, { max_budget })).token_value
const limitedAsk = async (of = model) => await ask(await tokenOf(small), of)

const excessesSchema = z.looseObject({
  excesses: z.array(z.looseObject({ provider_id: z.string(), model: z.string(), excess: z.number() })),
})
const excesses = async () => expectAnswer(await api(gatehouse, '/v1/usage/excesses'), 200, excessesSchema).excesses

/** The provider adds a hidden prompt of so many tokens: 0.40 dollars a million. */
function hide(tokens: number): void {
  const usage = { prompt_tokens: tokens, completion_tokens: 5, total_tokens: tokens + 5 }
  for (const each of [model, other]) upstream.when(each, jsonReply(chatAnswer({ usage })))
}

async function restart(how: 'stop' | 'kill'): Promise<void> {
  const { dataDirectory, adminToken, supervisorPid } = gatehouse
  if (how === 'stop') await gatehouse.stop()
  else {
    const pids = [supervisorPid, ...descendantsOf(supervisorPid)]
    for (const pid of pids) signal(pid, 'SIGKILL')
    await until('all of it is gone', () => !pids.some(isAlive))
  }
  gatehouse = await startGatehouse({ upstream, dataDirectory, adminToken })
}

test('the worst excess of a model stands in later bounds, also after a stop and a kill, and no other model pays for it', async () => {
  const large = await tokenOf(100)
  hide(500_000)
  expect((await ask(large)).status).toBe(200)
  hide(250_000)
  expect((await ask(large)).status).toBe(200)
  await until('the excess is known', async () => (await excesses()).length === 1)
  const [known] = await excesses()
  expect(known).toMatchObject({ model })
  expect(known?.excess).toBeGreaterThan(0.1)
  hide(10)
  for (const how of ['stop', 'kill'] as const) {
    await restart(how)
    expect(JSON.stringify(await excesses())).toBe(JSON.stringify([known]))
    await until('the bound has the excess', async () => (await limitedAsk()).status === 402)
    expect((await limitedAsk()).text).toContain('charged beyond its list price')
    expect((await limitedAsk(other)).status).toBe(200)
    expect((await ask(large)).status).toBe(200)
  }
})

test('an operator sees the excess, forgets it, and the list price holds again', async () => {
  const listed = await operate(gatehouse, 'usage', 'excesses')
  expect([listed.code, listed.stdout]).toEqual([0, expect.stringContaining(model)])
  const forgotten = await operate(gatehouse, 'usage', 'forget-excess', 'openai', model)
  expect([forgotten.code, forgotten.stdout]).toEqual([0, expect.stringContaining(model)])
  expect(await excesses()).toEqual([])
  await until('the list price holds', async () => (await limitedAsk()).status === 200)
})

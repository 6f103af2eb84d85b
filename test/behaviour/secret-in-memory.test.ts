/**
 * What an attacker with a core dump would find of a token's secret. A secret passes through the memory of the process
 * that it was shown to, as part of a request, and copies of it stay there until that memory is collected and used again:
 * nothing in this runtime can overwrite a string. What can be held is that nothing keeps it: copies do not add up with
 * use, other requests wear them away, and a process that was never shown the secret has none.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { api, chat, createToken, revoke } from '../support/client.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'
import { occurrencesInMemory } from '../support/memory.ts'

setDefaultTimeout(120_000)

let gatehouse: Gatehouse
beforeAll(async () => {
  gatehouse = await startGatehouse()
}, 240_000)
afterAll(() => gatehouse?.stop())

const uses = 300
/** Buffers of connections and garbage that was not collected yet. */
const passing = 60

/** Does it so often, a few at once. */
async function times(count: number, work: (n: number) => Promise<void>): Promise<void> {
  let next = 0
  const worker = async () => {
    while (next < count) await work(next++)
  }
  await Promise.all(Array.from({ length: 4 }, worker))
}

test('no process keeps a secret in memory, however often it was refused', async () => {
  const { token_value: secret, id } = await createToken(gatehouse)
  await revoke(gatehouse, id)
  await times(uses, async (n) => {
    const refused = await chat(gatehouse, { token: secret, requestId: `use-${n}` })
    expect(refused.status).toBe(401)
    await refused.arrayBuffer()
    if (n % 10 === 0) {
      await api(gatehouse, '/v1/tokens', { token: secret })
      await api(gatehouse, '/v1/tokens/validate', { body: { token: secret } })
      await api(gatehouse, '/v1/tokens', { body: { name: secret, purpose: secret } })
    }
  })
  const shown = occurrencesInMemory(gatehouse.controlPlanePid(), secret)
  const { token_value: other } = await createToken(gatehouse)
  // As many as have the memory of requests collected and used again.
  await times(10 * uses, async () => {
    await (await chat(gatehouse, { token: other, model: 'simulator/echo' })).arrayBuffer()
    await api(gatehouse, '/v1/tokens?limit=10')
  })
  expect(occurrencesInMemory(gatehouse.supervisorPid, secret)).toBe(0)
  expect(occurrencesInMemory(gatehouse.gatewayPid(), secret)).toBeLessThan(passing)
  // Measured: of 150 refused calls 153 copies right after, 9 after 500 other calls; of bodies they last longer.
  expect(occurrencesInMemory(gatehouse.controlPlanePid(), secret)).toBeLessThan(shown)
})

test('the memory search finds a known value', () => {
  const mark = `mark-${crypto.randomUUID()}`
  expect(occurrencesInMemory(process.pid, mark)).toBeGreaterThan(0)
})

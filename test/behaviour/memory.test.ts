import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { chatAnswer } from '../fakes/chat.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'

setDefaultTimeout(120_000)

const mebibyte = 1024 * 1024
const held = Promise.withResolvers<void>()

let provider: ReturnType<typeof Bun.serve>
let gatehouse: Gatehouse

beforeAll(async () => {
  provider = Bun.serve({
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const text = await request.text()
      if (text.includes('hold this')) await held.promise
      return new Response(chatAnswer(), { headers: { 'content-type': 'application/json' } })
    },
  })
  gatehouse = await startGatehouse({
    upstream: { baseUrl: `http://127.0.0.1:${provider.port}` },
    env: { SERVICE_MEMORY_BYTES: String(64 * mebibyte) },
  })
}, 240_000)
afterAll(async () => {
  await gatehouse?.stop()
  await provider?.stop(true)
})

const chat = (text: string) =>
  fetch(`${gatehouse.gatewayUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gatehouse.adminToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpt-test', messages: [{ role: 'user', content: text }] }),
  })

/** The most memory that the gateway's process has had at once. */
const peakBytes = () =>
  1024 * Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${gatehouse.gatewayPid()}/status`, 'utf8'))?.[1])

test('concurrent large bodies are served in turn within bounded memory while small ones pass', async () => {
  expect((await chat('Good morning')).status).toBe(200)
  const before = peakBytes()
  const large = Array.from({ length: 40 }, () => chat(`hold this ${'x'.repeat(5 * mebibyte)}`))
  expect((await chat('Good evening')).status).toBe(200)
  held.resolve()
  const answers = await Promise.all(large)
  expect(answers.map(({ status }) => status)).toEqual(large.map(() => 200))
  // The bodies alone are 200 MiB: held together, with what is made of them, they took 600 MiB and more.
  expect(peakBytes() - before).toBeLessThan(250 * mebibyte)
})

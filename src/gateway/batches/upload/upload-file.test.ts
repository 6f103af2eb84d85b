/** A large file on its way to a provider that takes its time. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startTestGateway, type TestGateway } from '../../testing/gateway.ts'
import { testProvider } from '../../testing/worker.ts'

let running: TestGateway
let taken = 0
/** Reads slowly, so that the file takes longer to send than a provider may be silent. */
const slow = Bun.serve({
  port: 0,
  idleTimeout: 0,
  async fetch({ body }) {
    for await (const piece of body ?? []) {
      taken += piece.length
      await Bun.sleep(40)
    }
    return Response.json({ id: 'file-1', object: 'file' })
  },
})

beforeAll(async () => {
  running = await startTestGateway(() => Response.json({}), { path_retries: 0, first_byte_timeout_seconds: 1 })
  running.worker.upstreams.length = 0
  running.worker.upstreams.push(testProvider({ baseUrl: `http://127.0.0.1:${slow.port}` }))
})
afterAll(async () => {
  await running.stop()
  await slow.stop(true)
})

test('a file that takes longer to send than a provider may be silent arrives whole', async () => {
  const lines = Array.from({ length: 800 }, (_, number) =>
    JSON.stringify({
      ...{ custom_id: `r${number}`, method: 'POST', url: '/v1/chat/completions' },
      body: { model: 'gpt-test', messages: [{ role: 'user', content: 'x'.repeat(50_000) }] },
    }),
  ).join('\n')
  const form = new FormData()
  form.set('purpose', 'batch')
  form.set('file', new File([lines], 'requests.jsonl'))
  const began = performance.now()
  const headers = { authorization: `Bearer ${running.secret}` }
  const answer = await fetch(`${running.url}/v1/files`, { method: 'POST', body: form, headers })
  expect(answer.status).toBe(200)
  expect(performance.now() - began).toBeGreaterThan(1500)
  expect(taken).toBeGreaterThan(lines.length)
})

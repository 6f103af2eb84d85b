/** Who comes while the gateway stops is told so on every route, and is on record by name where it is known. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { completion, question, startTestGateway, type TestGateway, waitUntil } from './testing/gateway.ts'
import { jsonHeaders } from './testing/mcp.ts'

const held = Promise.withResolvers<void>()
let running: TestGateway
let stopping: Promise<unknown>

beforeAll(async () => {
  const answer = () => held.promise.then(() => Response.json(completion))
  running = await startTestGateway(answer, { drain_seconds: 60 })
  const answering = running.chat(question).then((response) => response.text())
  await waitUntil(() => running.seen.length === 1)
  stopping = Promise.all([running.gateway.drain(), answering])
})
afterAll(async () => {
  held.resolve()
  await stopping
  await running.stop()
})

const handshake = {
  ...{ connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' },
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
}
const routes: readonly (readonly [string, RequestInit])[] = [
  ['/v1/chat/completions', { method: 'POST', body: JSON.stringify(question) }],
  ['/v1/models', {}],
  ['/v1/chat/completions/ws', { headers: handshake }],
  ['/mcp', { method: 'POST', headers: jsonHeaders, body: '{"jsonrpc":"2.0","id":1,"method":"ping"}' }],
]

async function refused(path: string, init: RequestInit, secret: string) {
  const headers = { authorization: `Bearer ${secret}`, ...Object.fromEntries(new Headers(init.headers)) }
  const text = await (await fetch(`${running.url}${path}`, { ...init, headers })).text()
  expect(text).toContain('"code":"draining"')
  const event = running.worker.journal.outcomes().at(-1)
  expect(event).toMatchObject({ verdict: 'error', reason_code: 'draining' })
  return event?.event_attribution.token_id
}

test.each(routes)('%s', async (path, init) => {
  expect(await refused(path, init, running.worker.addToken({ id: 'in use' }))).toBe('in use')
  expect(await refused(path, init, running.worker.addToken({ id: 'revoked', revokedAt: 0 }))).toBe('revoked')
  expect(await refused(path, init, 'gth_of-nobody')).toBeNull()
})

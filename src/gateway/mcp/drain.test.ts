/** What callers on `/mcp` are told at a drain's end. */
import { expect, test } from 'bun:test'
import { eventually } from '../../../test/support/eventually.ts'
import { jsonHeaders, messagesOf, startMcpGateway, testMcpServer } from '../testing/mcp.ts'

const slow = testMcpServer('slow', {
  'tools/list': () => ({ tools: [{ name: 'wait', inputSchema: { type: 'object' } }] }),
  'tools/call': () => new Promise(() => undefined),
})
const call = (id: number) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'slow__wait' } })

test('answers calls that a drain cuts with the reason before their connections close', async () => {
  const running = await startMcpGateway([slow], { drain_seconds: 0 })
  const caller = await running.caller()
  await caller.ask('tools/list')
  const forms = ['application/json', 'application/json, text/event-stream', 'text/event-stream, application/json']
  const answers = forms.map((accept, id) => caller.post(call(id), { accept }))
  await eventually(() => slow.requests.filter(({ method }) => method === 'tools/call').length === forms.length)
  await running.stop()
  const said = await Promise.all(answers.map(async (answer) => (await messagesOf(await answer)).at(-1)))
  expect(said).toMatchObject(forms.map((_, id) => ({ id, error: { data: { code: 'draining', status: 503 } } })))
  const outcomes = running.worker.journal.outcomes().filter(({ reason_code: reason }) => reason === 'gateway.drained')
  expect(outcomes.map(({ verdict, details }) => [verdict, details?.status])).toEqual(forms.map(() => ['error', 200]))
})

const quick = testMcpServer('quick', {
  'tools/list': () => ({ tools: [{ name: 'echo', inputSchema: { type: 'object' } }] }),
  'tools/call': () => ({ content: [{ type: 'text', text: 'done' }] }),
})
const clientInfo = { name: 'test', version: '1' }
const admitted = [
  ['tools/call', { name: 'quick__echo' }],
  ['tools/list', {}],
  ['initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo }],
] as const

/** A message to a gateway that begins to stop before its body has come. */
async function halfSent(running: Awaited<ReturnType<typeof startMcpGateway>>, method: string, params: object) {
  const { session, ask } = await running.caller()
  await ask('tools/list')
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
  const headers = { ...jsonHeaders, authorization: `Bearer ${running.secret}`, 'mcp-session-id': session }
  const request = new Request(`${running.url}/mcp`, { method: 'POST', headers, body: readable })
  const answering = running.gateway.fetch(request)
  const stopping = running.stop()
  const writer = writable.getWriter()
  await writer.write(new TextEncoder().encode(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })))
  await writer.close()
  return { answering, stopping }
}

test.each(admitted)('serves %s whose body is still arriving when the drain begins', async (method, params) => {
  const running = await startMcpGateway([quick], { drain_seconds: 60 })
  const { answering, stopping } = await halfSent(running, method, params)
  expect(await (await answering)?.json()).toMatchObject({ id: 1, result: {} })
  await stopping
  expect(running.worker.journal.outcomes().at(-1)).toMatchObject({ verdict: 'allow', reason_code: 'ok' })
})

test('waits in a drain for the whole message, not only for its body', async () => {
  const done = Promise.withResolvers<void>()
  const working = testMcpServer('quick', {
    ...quick.handlers,
    'tools/call': () => done.promise.then(() => ({ content: [] })),
  })
  const running = await startMcpGateway([working], { drain_seconds: 60 })
  const { answering, stopping } = await halfSent(running, ...admitted[0])
  let isOver = false
  const stopped = stopping.then(() => {
    isOver = true
  })
  await eventually(() => working.requests.some(({ method }) => method === 'tools/call'))
  await Bun.sleep(50)
  expect(isOver).toBe(false)
  done.resolve()
  expect(await (await answering)?.json()).toEqual({ jsonrpc: '2.0', id: 1, result: { content: [] } })
  await stopped
})

/** What callers on `/mcp` are told at a drain's end. */
import { expect, test } from 'bun:test'
import { eventually } from './test-gateway.ts'
import { messagesOf, startMcpGateway, testMcpServer } from './test-mcp.ts'

const slow = testMcpServer('slow', {
  'tools/list': () => ({ tools: [{ name: 'wait', inputSchema: { type: 'object' } }] }),
  'tools/call': () => new Promise(() => undefined),
})
const call = (id: number) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'slow__wait' } })

test('calls that a drain cuts are answered with why before their connections close, whatever form they take', async () => {
  const running = await startMcpGateway([slow], { drain_seconds: 0 })
  const caller = await running.caller()
  await caller.ask('tools/list')
  const forms = ['application/json', 'application/json, text/event-stream', 'text/event-stream, application/json']
  const answers = forms.map((accept, id) => caller.post(call(id), { accept }))
  await eventually(() => slow.asked.filter(({ method }) => method === 'tools/call').length === forms.length)
  await running.stop()
  const said = await Promise.all(answers.map(async (answer) => (await messagesOf(await answer)).at(-1)))
  expect(said).toMatchObject(forms.map((_, id) => ({ id, error: { data: { code: 'draining', status: 503 } } })))
  const outcomes = running.lane.journal.outcomes().filter(({ reason_code: reason }) => reason === 'gateway.drained')
  expect(outcomes.map(({ verdict, details }) => [verdict, details?.status])).toEqual(forms.map(() => ['error', 200]))
})

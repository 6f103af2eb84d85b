/** The end of a gateway whose MCP calls do not finish in time, its sessions in one process or dealt out to several. */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { OfficialMcpServer } from '../fakes/official-mcp-server.ts'
import { api, createToken } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { startGatehouse } from '../support/harness.ts'
import { eventsInLedger } from '../support/recorded.ts'

setDefaultTimeout(120_000)

const tools = new OfficialMcpServer()
afterAll(() => tools.stop())

const forms = ['application/json', 'application/json, text/event-stream', 'text/event-stream, application/json']
const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } }

test.each(['1', '2'])('every call that a drain of %s workers cuts gets an answer', async (workers) => {
  await using gatehouse = await startGatehouse({
    flags: ['--drain-seconds', '1'],
    env: { SERVICE_GATEWAY_WORKERS: workers },
  })
  const { token_value: token } = await createToken(gatehouse)
  const send = (message: object, headers: Record<string, string> = {}) =>
    fetch(`${gatehouse.gatewayUrl}/mcp`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', ...message }),
      // The kernel gives each connection to either worker.
      keepalive: false,
    })
  expect((await api(gatehouse, '/v1/catalog/mcp-servers', { body: { name: 'tools', url: tools.url } })).status).toBe(
    201,
  )
  const begun = await send({ id: 0, method: 'initialize', params })
  await begun.text()
  const session = { 'mcp-session-id': begun.headers.get('mcp-session-id') ?? '' }
  const call = (id: number, name: string, headers: Record<string, string> = {}) =>
    send({ id, method: 'tools/call', params: { name: `tools__${name}` } }, { ...session, ...headers })
  await until('the server is there', async () => (await (await call(1, 'echo')).text()).includes('"result"'))
  const before = tools.called.length
  const ids = Array.from({ length: 12 }, (_, id) => id)
  const answers = ids.map(async (id) => {
    const headers = { accept: forms[id % forms.length] ?? '', 'x-request-id': `cut-${id}` }
    return await (await call(id, 'wait', headers)).text()
  })
  await until('all calls have reached the server', () => tools.called.length === before + ids.length)
  const ended = gatehouse.end('SIGTERM')
  for (const [id, text] of (await Promise.all(answers)).entries()) {
    const message = /\{"jsonrpc".*\}/.exec(text)?.[0] ?? '{}'
    expect(JSON.parse(message)).toMatchObject({ id, error: { data: { code: 'draining', status: 503 } } })
  }
  expect(await ended).toBe(0)
  const outcomes = eventsInLedger(gatehouse).filter(({ request_id: id }) => id?.startsWith('cut-'))
  const said = outcomes.map(({ verdict, reason_code: reason, details }) => [verdict, reason, details?.status])
  expect(said).toEqual(ids.map(() => ['error', 'gateway.drained', 200]))
})

/** MCP sessions of callers with JWTs, who share a token: each has its own, and it ends with what lets it in. */
import { afterEach, expect, test } from 'bun:test'
import { eventually } from '../../../test/support/eventually.ts'
import { hashSecret } from '../../identity/secret.ts'
import { identityOf, makeKey, signed } from '../../workloads/testing/issuer.ts'
import { jsonHeaders, startMcpGateway, testMcpServer } from '../testing/mcp.ts'

let gateway: Awaited<ReturnType<typeof startMcpGateway>>
afterEach(() => gateway.stop())

const key = await makeKey('one', 'ES256')

async function start() {
  gateway = await startMcpGateway([testMcpServer('files', { 'tools/list': () => ({ tools: [] }) })])
  const tokenHash = hashSecret(gateway.worker.addToken())
  const identity = identityOf([key], { tokenHash })
  gateway.worker.workloadIdentities = new Map([[identity.id, identity]])
  return identity
}
const jwtOf = (sub: string, jti: string) => signed(key, Date.now(), { sub, jti })
const send = (jwt: string, method: string, session?: string) =>
  fetch(`${gateway.url}/mcp`, {
    method: 'POST',
    headers: { ...jsonHeaders, authorization: `Bearer ${jwt}`, ...(session && { 'mcp-session-id': session }) },
    body: JSON.stringify({
      ...{ jsonrpc: '2.0', id: 1, method },
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
    }),
  })
const begin = async (jwt: string): Promise<string> =>
  (await send(jwt, 'initialize')).headers.get('mcp-session-id') ?? ''

test('is found by a renewed JWT of its subject, and by no other subject with the same token', async () => {
  await start()
  const session = await begin(await jwtOf('ann', 'a'))
  expect((await send(await jwtOf('ann', 'b'), 'tools/list', session)).status).toBe(200)
  expect((await send(await jwtOf('bob', 'c'), 'tools/list', session)).status).toBe(404)
})

test('tells nothing to a subject that was revoked', async () => {
  const identity = await start()
  const listen = async (sub: string) => {
    const jwt = await jwtOf(sub, sub)
    const session = await begin(jwt)
    await send(jwt, 'tools/list', session)
    const headers = { accept: 'text/event-stream', authorization: `Bearer ${jwt}`, 'mcp-session-id': session }
    const { body } = await fetch(`${gateway.url}/mcp`, { headers })
    const heard = { text: '' }
    const read = async () => {
      const decoder = new TextDecoder()
      for await (const piece of body ?? []) heard.text += decoder.decode(piece)
    }
    read().catch(() => undefined)
    return heard
  }
  const [gone, stays] = [await listen('gone'), await listen('stays')]
  const changed = { ...identity, revokedSubjects: new Set(['gone']) }
  gateway.worker.workloadIdentities = new Map([[identity.id, changed]])
  gateway.servers.changed()
  await eventually(() => stays.text.includes('list_changed'))
  expect(gone.text).not.toContain('list_changed')
})

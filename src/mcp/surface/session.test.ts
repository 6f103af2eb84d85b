import { expect, test } from 'bun:test'
import type { Json, McpCaller, McpConnection, McpServerRecord, McpServers } from '../connection.ts'
import { McpError } from '../mcp-error.ts'
import { McpSession } from './session.ts'

const record: McpServerRecord = { id: 's', name: 'files', version: 1, timeoutMilliseconds: 1000 }

/** A session over servers of which `connect` says what becomes of the only one. */
function sessionWith(connect: (caller: McpCaller) => Promise<McpConnection>, capabilities: Json = {}): McpSession {
  const servers: McpServers = {
    list: () => [record],
    connect: (_, caller) => connect(caller),
    approved: (_record, _kind, offers) => [...offers],
    onChange: () => () => undefined,
    strays: 0,
  }
  return new McpSession({
    ...{ id: 'i', label: 'l', token: { id: 't', hash: 'h' }, protocolVersion: '2025-11-25', capabilities, servers },
    governor: { ask: (_, { params }, deliver) => deliver(params), tell: async (_, { params }) => params },
    letFall: () => undefined,
  })
}

test('the level of logging is set, whatever a server says that cannot be opened', async () => {
  const { promise, reject } = Promise.withResolvers<McpConnection>()
  const session = sessionWith(() => promise)
  const opening = session.connection(record)
  const level = session.setLevel('info')
  reject(new McpError(-32000, 'Words that no policy has seen'))
  expect(await level).toBeUndefined()
  await expect(opening).rejects.toMatchObject({ code: -32000 })
})

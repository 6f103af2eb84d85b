import { expect, test } from 'bun:test'
import type { McpConnection, McpServerRecord } from '../connection.ts'
import { SessionConnections } from './session-connections.ts'

const older: McpServerRecord = { id: 's', name: 'files', version: 1, timeoutMilliseconds: 1000, approval: 'required' }
const newer = { ...older, version: 2 }

test('replaces the connection of an older record, and keeps that of a newer one', async () => {
  const closed: number[] = []
  const connections = new SessionConnections(async (server): Promise<McpConnection> => {
    return {
      ...{ server, modern: false, capabilities: {}, instructions: null },
      request: async () => ({}),
      notify: async () => undefined,
      close: async () => void closed.push(server.version),
    }
  })
  await connections.opened(older).opening
  const kept = await connections.opened(newer).opening
  expect(() => connections.opened(older)).toThrow('The MCP server was changed')
  expect(await connections.opened(newer).opening).toBe(kept)
  expect(closed).toEqual([1])
})

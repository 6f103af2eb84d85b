import { expect, test } from 'bun:test'
import { until } from '../../../test/support/eventually.ts'
import type { Json, McpCaller, McpConnection, McpServerRecord, McpServers } from '../connection.ts'
import { McpError } from '../mcp-error.ts'
import { McpSession } from './session.ts'

const record: McpServerRecord = { id: 's', name: 'files', version: 1, timeoutMilliseconds: 1000, approval: 'required' }

/** A session over servers of which `connect` says what becomes of the only one. */
function sessionWith(connect: (caller: McpCaller) => Promise<McpConnection>, capabilities: Json = {}): McpSession {
  const servers: McpServers = {
    list: () => [record],
    connect: (_, caller) => connect(caller),
    isModern: () => false,
    approved: (_record, _kind, offers) => [...offers],
    onChange: () => () => undefined,
    unsolicited: 0,
  }
  return new McpSession({
    ...{
      id: 'i',
      label: 'l',
      token: { id: 't', hash: 'h' },
      owner: 'o',
      protocolVersion: '2025-11-25',
      capabilities,
      servers,
    },
    governor: {
      ask: (_, { params }, deliver) => deliver(params),
      tell: async (_, { params }) => params,
      mayTell: () => true,
    },
    evicted: () => undefined,
  })
}

test('sets the log level even when one server cannot be opened', async () => {
  const { promise, reject } = Promise.withResolvers<McpConnection>()
  const session = sessionWith(() => promise)
  const opening = session.connection(record)
  const level = session.setLevel('info')
  reject(new McpError(-32000, 'Words that no policy has seen'))
  expect(await level).toBeUndefined()
  await expect(opening).rejects.toMatchObject({ code: -32000 })
})

test('forwards numbers of a caller’s notification to a server and drops its text', async () => {
  const told: [method: string, params: Json | undefined][] = []
  const opened = Promise.withResolvers<McpCaller>()
  const session = sessionWith(
    async (caller) => {
      opened.resolve(caller)
      return {
        ...{ server: record, modern: false, capabilities: {}, instructions: null },
        request: async () => ({}),
        notify: async (method, params) => void told.push([method, params]),
        close: async () => undefined,
      }
    },
    { sampling: {}, roots: {} },
  )
  await session.connection(record)
  const caller = await opened.promise
  const params = { _meta: { progressToken: 'p' } }
  const asking = caller.request('sampling/createMessage', params, { signal: AbortSignal.timeout(5000) })
  const message = 'Words that no policy has seen'
  const say = (method: string, words: Json) => session.receive({ kind: 'notification', method, params: words })
  await until('the question', () => {
    say('notifications/progress', { progressToken: 'server-1', progress: 1, total: 2, message })
    return told.length > 0
  })
  expect(told[0]).toEqual(['notifications/progress', { progressToken: 'p', progress: 1, total: 2 }])
  say('notifications/roots/list_changed', { message })
  await until('the other', () => told.some(([method]) => method === 'notifications/roots/list_changed'))
  expect(JSON.stringify(told)).not.toContain(message)
  session.close()
  await expect(asking).rejects.toMatchObject({ message: 'The session has ended' })
})

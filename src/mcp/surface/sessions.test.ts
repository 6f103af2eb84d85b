import { expect, test } from 'bun:test'
import { noMcpServers } from '../no-servers.ts'
import { EndedSessions } from './ended-sessions.ts'
import { McpSession } from './session.ts'
import { McpSessions, type SessionStatus } from './sessions.ts'

const idleMilliseconds = 1000

function sessionOf(id: string, owner: string, protocolVersion = '2025-11-25'): McpSession {
  return new McpSession({
    ...{ id, label: 'l', token: { id: 't', hash: 'h' }, owner, servers: noMcpServers },
    protocolVersion,
    capabilities: {},
    governor: {
      ask: () => Promise.reject(new Error('unasked')),
      tell: async () => null,
      mayTell: () => true,
    },
    evicted: () => undefined,
  })
}

test('gives a session only to its owner and limits an owner to a tenth of all sessions', () => {
  const sessions = new McpSessions({ most: 20, idleMilliseconds, ended: new EndedSessions() })
  for (const id of ['a', 'b', 'c']) sessions.add(sessionOf(id, 'one'), 0)
  sessions.add(sessionOf('d', 'other'), 0)
  expect(['a', 'b', 'c', 'd'].map((id) => sessions.find(id, 'one', 0)?.id)).toEqual([undefined, 'b', 'c', undefined])
  sessions.close()
})

test('makes room by what callers of 2026-07-28 do not miss, and refuses a session without any', () => {
  const sessions = new McpSessions({ most: 3, idleMilliseconds, ended: new EndedSessions() })
  sessions.add(sessionOf('old', 'one'), 0)
  sessions.add(sessionOf('new 1', 'two', '2026-07-28'), 2)
  sessions.add(sessionOf('new 2', 'three', '2026-07-28'), 1)
  const listening = sessions.find('new 1', 'two', 2)?.subscriptions.add(1, {}, () => undefined)
  sessions.add(sessionOf('newer', 'four'), 3)
  expect([sessions.find('new 2', 'three', 3), sessions.size]).toEqual([null, 3])
  expect(() => sessions.add(sessionOf('newest', 'five'), 4)).toThrow('too many MCP sessions')
  expect(listening).toBeDefined()
  sessions.close()
})

test('ends sessions of a revoked token, and unused ones of a rotated token even while the caller listens', () => {
  const sessions = new McpSessions({ most: 20, idleMilliseconds, ended: new EndedSessions() })
  const statuses: Record<string, SessionStatus> = { a: 'usable', b: 'replaceable', c: 'ended', d: 'usable' }
  for (const id of Object.keys(statuses)) sessions.add(sessionOf(id, id), 0)
  for (const id of ['a', 'b']) sessions.find(id, id, 0)?.listen()
  const sweepAt = (now: number) => {
    sessions.sweep(now, ({ id }) => statuses[id] ?? 'ended')
    return sessions.size
  }
  expect(sweepAt(idleMilliseconds)).toBe(3)
  expect(sessions.find('c', 'c', 0)).toBeNull()
  expect(sweepAt(idleMilliseconds + 1)).toBe(1)
  expect(sessions.find('a', 'a', 0)?.id).toBe('a')
  sessions.close()
})

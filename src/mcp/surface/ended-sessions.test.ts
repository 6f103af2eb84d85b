import { expect, test } from 'bun:test'
import { mkdtempSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EndedSessions } from './ended-sessions.ts'

const directory = () => mkdtempSync(join(tmpdir(), 'ended-sessions-'))

test('knows after a restart, and at another worker of the host, which sessions their callers ended', () => {
  const all = [directory(), directory()]
  const [one = '', other = ''] = all
  const before = new EndedSessions({ own: one, all })
  const neighbour = new EndedSessions({ own: other, all })
  expect(neighbour.has('gone')).toBe(false)
  before.keep('gone')
  before.add('idle')
  expect([before.has('gone'), before.has('idle'), neighbour.has('gone')]).toEqual([true, true, true])
  const after = new EndedSessions({ own: one, all })
  expect([after.has('gone'), after.has('idle'), after.has('other')]).toEqual([true, false, false])
})

test('forgets the oldest and keeps its files small', () => {
  const own = directory()
  const ended = new EndedSessions({ own, all: [own] })
  for (let count = 0; count < 45_000; count++) ended.keep(`session ${count}`)
  const later = new EndedSessions({ own, all: [own] })
  expect([later.has('session 0'), later.has('session 30000'), later.has('session 44999')]).toEqual([false, true, true])
  for (const name of ['ended-mcp-sessions', 'ended-mcp-sessions.old'])
    expect(statSync(join(own, name)).size).toBeLessThanOrEqual(500_033)
})

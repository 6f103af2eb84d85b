import { expect, test } from 'bun:test'
import { systemClock } from '../../lib/clock.ts'
import type { Database } from '../../store/open.ts'
import { RuntimeTokens } from './runtime-token.ts'

function tokensWith(rows: Record<string, { hash: string; revoked_at: number | null }>) {
  const asked: unknown[] = []
  const read = async (_sql: string, [id]: unknown[] = []) => {
    asked.push(id)
    const row = rows[String(id)]
    return row === undefined ? [] : [{ ...row, expires_at: null, rotated_at: null }]
  }
  return { asked, tokens: new RuntimeTokens({ read } as unknown as Database, systemClock) }
}

test('looks a token up once per version, and not for changes that only ended others', async () => {
  const rows = { one: { hash: 'h1', revoked_at: null as number | null } }
  const { asked, tokens } = tokensWith(rows)
  expect(await Promise.all([tokens.active('one', 5), tokens.active('one', 5)])).toEqual([true, true])
  tokens.passed(6, ['other'])
  expect(await tokens.active('one', 6)).toBe(true)
  expect(asked).toEqual(['one'])
  rows.one.revoked_at = 1
  tokens.passed(7, ['other', 'h1'])
  expect(await tokens.active('one', 7)).toBe(false)
  expect(asked).toEqual(['one', 'one'])
})

test('looks a token up again after a change that was not announced', async () => {
  const rows = { one: { hash: 'h1', revoked_at: null as number | null } }
  const { tokens } = tokensWith(rows)
  expect(await tokens.active('one', 5)).toBe(true)
  rows.one.revoked_at = 1
  tokens.passed(7, ['other'])
  expect(await tokens.active('one', 7)).toBe(false)
})

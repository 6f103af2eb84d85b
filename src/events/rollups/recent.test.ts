import { expect, test } from 'bun:test'
import { failingOf, type MinuteRow } from './recent.ts'

const now = Date.parse('2026-03-10T12:00:30Z')
/** So many requests in the minute that began so many minutes ago. */
const row = (verdict: string, requests: number, minutesAgo: number, key = 'gpt-4o'): MinuteRow => ({
  ...{ key, verdict, requests, at: now - 30_000 - minutesAgo * 60_000 },
})
const names = (rows: readonly MinuteRow[]) => failingOf(rows, now).map(({ name }) => name)

test('counts the requests since the first failure', () => {
  expect(failingOf([row('allow', 500, 40), row('allow', 6, 5), row('error', 3, 5), row('error', 1, 2)], now)).toEqual([
    { name: 'gpt-4o', requests: 10, failed: 4, since: '2026-03-10T11:55:00.000Z' },
  ])
})

test('names nothing by too few failures, too few requests or too small a share', () => {
  expect(names([row('error', 2, 1), row('allow', 8, 1)])).toEqual([])
  expect(names([row('error', 4, 1)])).toEqual([])
  expect(names([row('error', 5, 1)])).toEqual(['gpt-4o'])
  expect(names([row('error', 9, 1), row('allow', 91, 1)])).toEqual([])
})

test('does not count what a policy or a limit refused', () => {
  expect(names([row('error', 3, 1), row('allow', 1, 1), row('deny', 50, 1), row('rate_limit', 50, 1)])).toEqual([])
  expect(names([row('error', 3, 1), row('rewrite', 2, 1), row('block', 100, 1)])).toEqual(['gpt-4o'])
})

test('has recovered when it answered since failures that are older than ten minutes', () => {
  const failures = row('error', 20, 30)
  expect(names([failures])).toEqual(['gpt-4o'])
  expect(names([failures, row('allow', 1, 3)])).toEqual([])
  expect(names([failures, row('error', 1, 9), row('allow', 1, 3)])).toEqual(['gpt-4o'])
})

test('names the one with the most failures first, and neither requests without a model nor MCP servers', () => {
  const rows = [row('error', 5, 1, 'a'), row('error', 7, 1, 'b'), row('error', 9, 1, ''), row('error', 9, 1, 'mcp:x')]
  expect(names(rows)).toEqual(['b', 'a'])
})

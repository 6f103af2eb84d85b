import { expect, test } from 'bun:test'
import { failedTests } from './failed-tests.ts'

const tested = (provider_id: string, ok: boolean, timestamp: string) => ({ timestamp, details: { provider_id, ok } })

test('gives the providers of which the newest test failed', () => {
  const found = failedTests([
    tested('repaired', true, '3'),
    tested('broken', false, '2'),
    tested('repaired', false, '1'),
    tested('broken', true, '0'),
  ])
  expect(found).toEqual([{ id: 'broken', at: '2' }])
})

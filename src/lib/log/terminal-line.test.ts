import { expect, test } from 'bun:test'
import { terminalLine } from './terminal-line.ts'

test('a person reads the time, the level, the process, the words and short values', () => {
  const fields = { level: 'warn', time: '2026-01-02T03:04:05.678Z', process: 'gateway' }
  const line = JSON.stringify({ ...fields, attempts: 2, body: 'x'.repeat(300), msg: 'A call failed' })
  expect(terminalLine(line)).toBe(`03:04:05 warn gateway: A call failed (attempts: 2, body: "${'x'.repeat(79)}…)\n`)
  expect(terminalLine(JSON.stringify({ ...fields, msg: 'It goes on' }))).toBe('03:04:05 warn gateway: It goes on\n')
})

import { expect, test } from 'bun:test'
import { until } from '../../../test/support/eventually.ts'
import { silentLog } from './log.ts'
import { limitLog } from './log-limit.ts'

interface Line {
  level: string
  fields: Record<string, unknown>
  message: string
}

function limited(milliseconds: number) {
  const lines: Line[] = []
  const keep = (level: string) => (fields: Record<string, unknown>, message: string) =>
    void lines.push({ level, fields, message })
  const log = { ...silentLog, error: keep('error'), warn: keep('warn'), info: keep('info') }
  return { lines, log: limitLog(log, { lines: 2, milliseconds }) }
}

test('of a line that repeats some are written, and then how many were not', async () => {
  const { lines, log } = limited(20)
  for (let n = 0; n < 100; n++) log.error({ request_id: `r${n}`, error: `disk ${n} is full` }, 'A request failed')
  expect(lines.map(({ fields }) => fields.request_id)).toEqual(['r0', 'r1'])
  await until('the count is written', () => lines.length === 3)
  expect(lines[2]).toEqual({
    level: 'error',
    fields: { request_id: 'r99', error: 'disk 99 is full', suppressed: 98 },
    message: 'A request failed',
  })
  log.error({ error: 'disk 1 is full' }, 'A request failed')
  expect(lines).toHaveLength(4)
})

test('lines of another cause, level or message are not held back, and information never is', () => {
  const { lines, log } = limited(60_000)
  for (let n = 0; n < 10; n++) log.error({ error: 'disk full' }, 'A request failed')
  log.error({ error: 'no such table' }, 'A request failed')
  log.error({ error: 'disk full' }, 'An export failed')
  log.warn({ error: 'disk full' }, 'A request failed')
  for (let n = 0; n < 10; n++) log.info({}, 'A checkpoint was signed')
  expect(lines).toHaveLength(2 + 3 + 10)
})

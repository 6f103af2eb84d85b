import { expect, test } from 'bun:test'
import { createLog } from './json-log.ts'

test('writes a line as one JSON object with time, level, process, fields and message', () => {
  const lines: string[] = []
  const log = createLog({
    level: 'info',
    fields: { process: 'gateway' },
    destination: {
      put(bytes) {
        lines.push(Buffer.from(bytes).toString())
        return bytes.length
      },
    },
  })
  log.info({ worker: 'a/b/0' }, 'A worker connected')
  log.debug({}, 'Too fine to be kept')
  expect(lines).toHaveLength(1)
  expect(lines[0]?.endsWith('\n')).toBe(true)
  expect(JSON.parse(lines[0] ?? '')).toEqual({
    level: 'info',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    process: 'gateway',
    worker: 'a/b/0',
    msg: 'A worker connected',
  })
})

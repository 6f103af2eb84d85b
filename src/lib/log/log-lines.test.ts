import { expect, test } from 'bun:test'
import { closeSync, openSync } from 'node:fs'
import { createLog } from './json-log.ts'
import { logLines } from './log-lines.ts'

/** A disk with room for so many bytes. */
function disk(room: number) {
  const made = {
    room,
    text: '',
    put(bytes: Uint8Array): number {
      if (made.room === 0) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
      const count = Math.min(made.room, bytes.length)
      made.room -= count
      made.text += Buffer.from(bytes.subarray(0, count)).toString()
      return count
    },
  }
  return made
}

test('lines that find no space are dropped and counted, the cut one is ended, and they go on with space', () => {
  const resumed: number[] = []
  const full = disk(8)
  const lines = logLines({ put: full.put, onResumed: (dropped) => resumed.push(dropped) })
  lines.write('first\n')
  lines.write('second\n')
  lines.write('third\n')
  expect(full.text).toBe('first\nse')
  full.room = 100
  lines.write('fourth\n')
  lines.write('fifth\n')
  expect(full.text).toBe('first\nse\nfourth\nfifth\n')
  expect(resumed).toEqual([2])
})

test('a slow reader is waited for, but not by every line once it was too slow', () => {
  let asked = 0
  const lines = logLines({
    put() {
      asked += 1
      throw Object.assign(new Error('try again'), { code: 'EAGAIN' })
    },
    onResumed: () => undefined,
  })
  lines.write('first\n')
  const waited = asked
  expect(waited).toBeGreaterThan(1)
  lines.write('second\n')
  expect(asked).toBe(waited + 1)
})

test('a process continues if its log cannot be written', async () => {
  const source = `
    import { createLog } from ${JSON.stringify(`${import.meta.dir}/json-log.ts`)}
    const log = createLog({ level: 'info', destination: 'stderr' })
    for (let line = 0; line < 3; line++) log.info({}, 'lost')
    setTimeout(() => { log.error({}, 'lost'); console.log('went on') }, 10)`
  const device = openSync('/dev/full', 'w')
  const child = Bun.spawn([process.execPath, '-e', source], { stdout: 'pipe', stderr: device })
  const said = await child.stdout.text()
  closeSync(device)
  expect(said).toBe('went on\n')
  expect(await child.exited).toBe(0)
})

test('the log says how many lines were dropped', () => {
  const full = disk(0)
  const log = createLog({ level: 'info', destination: { put: full.put } })
  log.info({}, 'lost')
  full.room = 1000
  log.info({}, 'kept')
  expect(
    full.text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line)),
  ).toMatchObject([{ msg: 'kept' }, { level: 'warn', dropped: 1 }])
})

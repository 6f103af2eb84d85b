import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log/log.ts'
import { eventually } from '../../test/support/eventually.ts'
import { keepRunning, nextDelay } from './supervisor.ts'

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-supervisor-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

let scripts = 0

/** A child made of a few lines; `journal` is a file that it appends a line to at each start. */
function childOf(lines: string): { child: ReturnType<typeof keepRunning>; starts(): Promise<number> } {
  const journal = join(directory, `journal-${++scripts}`)
  const path = join(directory, `child-${scripts}.js`)
  writeFileSync(path, `require('node:fs').appendFileSync(${JSON.stringify(journal)}, process.pid + '\\n')\n${lines}`)
  const child = keepRunning({
    name: 'gateway',
    command: [process.execPath, path],
    environment: process.env,
    clock: systemClock,
    log: silentLog,
  })
  const starts = async () => (await pids(journal)).length
  return { child, starts }
}

const pids = async (journal: string): Promise<string[]> =>
  (await Bun.file(journal).exists()) ? (await Bun.file(journal).text()).trim().split('\n') : []

const sayReady = `process.send({ ready: 'gateway', url: 'http://127.0.0.1:1' })`
const drainOnTerm = `process.on('SIGTERM', () => process.exit(0)); setInterval(() => {}, 1000)`

test('doubles the wait from 100 ms to 5 s, and starts again at 100 ms after a healthy time', () => {
  const waits: number[] = []
  for (let wait: number | null = null; waits.length < 8; waits.push(wait)) wait = nextDelay(wait, 0)
  expect(waits).toEqual([100, 200, 400, 800, 1600, 3200, 5000, 5000])
  expect(nextDelay(5000, 10_000)).toBe(100)
})

test('the wait is never shorter than the first and never longer than the longest', () => {
  const history = fc.array(fc.nat({ max: 30_000 }), { minLength: 1, maxLength: 50 })
  fc.assert(
    fc.property(history, (readyTimes) => {
      let wait: number | null = null
      for (const readyFor of readyTimes) {
        wait = nextDelay(wait, readyFor)
        expect(wait).toBeWithin(100, 5001)
      }
    }),
  )
})

test('restarts a child that was ready each time it ends', async () => {
  const { child, starts } = childOf(`${sayReady}; setTimeout(() => process.exit(7), 20)`)
  expect(await child.ready).toEqual({ ready: 'gateway', url: 'http://127.0.0.1:1' })
  await eventually(async () => (await starts()) >= 4)
  await child.stop(1000)
})

test('lets the child drain on stop and does not restart it', async () => {
  const { child, starts } = childOf(`${drainOnTerm}; ${sayReady}`)
  await child.ready
  await child.stop(5000)
  await Bun.sleep(150)
  expect(await starts()).toBe(1)
})

test('kills a child that does not end in time after stop', async () => {
  const { child } = childOf(`process.on('SIGTERM', () => {}); setInterval(() => {}, 1000); ${sayReady}`)
  await child.ready
  await child.stop(50)
})

test('does not restart a child that is stopped while a restart waits', async () => {
  const { child, starts } = childOf(`${sayReady}; setTimeout(() => process.exit(1), 5)`)
  await child.ready
  await eventually(async () => (await starts()) >= 3)
  await child.stop(1000)
  const before = await starts()
  await Bun.sleep(100)
  expect(await starts()).toBe(before)
})

test('gives up a child that never becomes ready after three starts, with its own error', async () => {
  const { child, starts } = childOf(
    `process.send({ ready: false, code: 'dependency_unavailable', message: 'The disk is gone' }); process.exit(1)`,
  )
  expect(child.ready).rejects.toMatchObject({ code: 'dependency_unavailable', message: 'The disk is gone' })
  await child.ready.catch(() => undefined)
  expect(await starts()).toBe(3)
})

test("gives up at once when the child's error would repeat", async () => {
  const { child, starts } = childOf(
    `process.send({ ready: false, code: 'address_in_use', message: 'Taken' }); process.exit(1)`,
  )
  expect(child.ready).rejects.toMatchObject({ code: 'address_in_use' })
  await child.ready.catch(() => undefined)
  expect(await starts()).toBe(1)
})

test('reports how a child ended that crashed without a message', async () => {
  const { child } = childOf(`process.kill(process.pid, 'SIGKILL')`)
  expect(child.ready).rejects.toMatchObject({ code: 'process_failed', message: expect.stringContaining('SIGKILL') })
  await child.ready.catch(() => undefined)
})

test('renews a child: it drains, starts again with the newest handover, and its messages are passed on', async () => {
  const path = join(directory, 'renewed.js')
  const onHandover = `process.once('message', ({ api_token }) => process.send({ ready: 'gateway', url: api_token }))`
  writeFileSync(path, `${onHandover}\n${drainOnTerm}`)
  const said: string[] = []
  let token = 'one'
  const child = keepRunning({
    name: 'gateway',
    command: [process.execPath, path],
    environment: process.env,
    clock: systemClock,
    log: silentLog,
    handover: async () => ({ api_token: token, state_file: null }),
    onMessage: (message) => void (message.ready === 'gateway' && said.push(message.url)),
  })
  await child.ready
  token = 'two'
  await child.renew(5000)
  await eventually(async () => said.length === 2)
  expect(said).toEqual(['one', 'two'])
  await child.stop(5000)
})

test("passes on a child's handover before the child is ready", async () => {
  const path = join(directory, 'soon.js')
  const handOver = `process.send({ ready: 'soon', api_token: 'one', state_file: null })`
  writeFileSync(path, `${handOver}\nprocess.once('message', () => { ${sayReady} })\n${drainOnTerm}`)
  const handed = Promise.withResolvers<string>()
  const child = keepRunning({
    name: 'control-plane',
    command: [process.execPath, path],
    environment: process.env,
    clock: systemClock,
    log: silentLog,
    onHandover: ({ api_token }) => handed.resolve(api_token),
    // Only what was handed over lets it become ready.
    handover: async () => ({ api_token: await handed.promise, state_file: null }),
  })
  expect(await child.ready).toEqual({ ready: 'gateway', url: 'http://127.0.0.1:1' })
  expect(await handed.promise).toBe('one')
  await child.stop(5000)
})

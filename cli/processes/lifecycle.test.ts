import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-lifecycle-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

let scripts = 0

/** A process that serves by `start`, `announced` and `drain`, which are JavaScript; it prints what it does. */
function serverOf({ start = '', announced = '', drain = '', drainSeconds = 5 }): string {
  const path = join(directory, `server-${++scripts}.ts`)
  writeFileSync(
    path,
    `import { serveUntilStopped } from ${JSON.stringify(join(import.meta.dir, 'lifecycle.ts'))}
     import { settingsSchema } from ${JSON.stringify(join(import.meta.dir, '../../src/config.ts'))}
     import { silentLog } from ${JSON.stringify(join(import.meta.dir, '../../src/lib/log/log.ts'))}
     await serveUntilStopped({
       settings: settingsSchema.parse({ drain_seconds: ${drainSeconds} }),
       listen: 'gateway_listen',
       recordingMilliseconds: 50,
       log: silentLog,
       async start() {
         ${start}
         return {
           ready: Promise.resolve({ ready: 'gateway', url: 'http://127.0.0.1:1' }),
           async announced() { ${announced} },
           async drain() { ${drain}; process.stdout.write('drained ') },
         }
       },
       announce: async () => { process.stdout.write('announced ') },
     })`,
  )
  return path
}

function supervised(path: string) {
  const first = Promise.withResolvers<unknown>()
  const child = Bun.spawn([process.execPath, path], {
    stdout: 'pipe',
    stderr: 'inherit',
    ipc: (message) => first.resolve(message),
  })
  return { child, message: first.promise, text: () => new Response(child.stdout).text() }
}

async function alone(path: string) {
  const child = Bun.spawn([process.execPath, path], { stdout: 'pipe', stderr: 'pipe' })
  const reader = child.stdout.getReader()
  const next = async () => new TextDecoder().decode((await reader.read()).value)
  return { child, said: await next(), next }
}

test('a child reports that it is ready, drains on SIGTERM and exits with 0', async () => {
  const { child, message, text } = supervised(serverOf({}))
  expect(await message).toEqual({ ready: 'gateway', url: 'http://127.0.0.1:1' })
  child.kill('SIGTERM')
  expect(await child.exited).toBe(0)
  expect(await text()).toBe('drained ')
})

test('a child drains and exits when its supervisor is gone', async () => {
  const { child, message, text } = supervised(serverOf({}))
  await message
  child.disconnect()
  expect(await child.exited).toBe(0)
  expect(await text()).toBe('drained ')
})

test('a child drains and exits when its supervisor ends while the child reports to it', async () => {
  const start = `process.stdout.write('starting '); Bun.sleepSync(500)`
  const { child } = supervised(serverOf({ start }))
  const reader = child.stdout.getReader()
  const next = async () => new TextDecoder().decode((await reader.read()).value)
  expect(await next()).toBe('starting ')
  child.disconnect()
  expect(await next()).toBe('drained ')
  expect(await child.exited).toBe(0)
})

test('a child leaves SIGINT to its supervisor', async () => {
  const { child, message, text } = supervised(serverOf({ drain: `process.stdout.write('by SIGTERM: ')` }))
  await message
  child.kill('SIGINT')
  child.kill('SIGINT')
  child.kill('SIGTERM')
  expect(await child.exited).toBe(0)
  expect(await text()).toBe('by SIGTERM: drained ')
})

test('a child that cannot start reports why to its supervisor and exits with 1', async () => {
  const start = `throw Object.assign(new Error('Failed to start server'), { code: 'EADDRINUSE' })`
  const { child, message } = supervised(serverOf({ start }))
  expect(await message).toEqual({
    ready: false,
    code: 'address_in_use',
    message: 'Cannot listen at 127.0.0.1:7080 (--gateway-listen): another process listens there',
  })
  expect(await child.exited).toBe(1)
})

test('cuts off a drain that does not end, and exits with 0', async () => {
  const { child, message, text } = supervised(serverOf({ drain: 'await new Promise(() => {})', drainSeconds: 0 }))
  await message
  child.kill('SIGTERM')
  expect(await child.exited).toBe(0)
  expect(await text()).toBe('')
})

test('a server without a supervisor announces its address and drains on SIGINT', async () => {
  const { child, said, next } = await alone(serverOf({}))
  expect(said).toBe('announced ')
  child.kill('SIGINT')
  expect(await child.exited).toBe(0)
  expect(await next()).toBe('drained ')
})

test('a server goes on when the announcement cannot be recorded', async () => {
  const refusing = { announced: `process.stdout.write('asked '); throw new Error('The ledger is away')` }
  const { child, message } = supervised(serverOf(refusing))
  await message
  child.send('announced')
  const own = await alone(serverOf(refusing))
  const said = own.said.includes('asked') ? own.said : own.said + (await own.next())
  expect(said).toBe('announced asked ')
  for (const process of [child, own.child]) process.kill('SIGTERM')
  expect([await child.exited, await own.child.exited]).toEqual([0, 0])
})

test('ends a server at once on a second signal that comes later', async () => {
  const { child } = await alone(
    serverOf({ drain: `setTimeout(() => process.kill(process.pid, 'SIGINT'), 1100); await new Promise(() => {})` }),
  )
  child.kill('SIGINT')
  expect(await child.exited).toBe(1)
})

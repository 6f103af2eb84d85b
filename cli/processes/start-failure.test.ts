import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { settingsSchema } from '../../src/config.ts'
import { Failure } from '../../src/failure.ts'
import { reserveAddress } from '../../src/lib/http/listen.ts'
import { lockDirectory } from '../../src/lib/lock.ts'
import { startFailure } from './start-failure.ts'

const data = mkdtempSync(join(tmpdir(), 'gatehouse-start-failure-'))
afterAll(() => rmSync(data, { recursive: true, force: true }))

test('names the data directory that is in use and the process that uses it', async () => {
  const lock = lockDirectory(data)
  const second = Bun.spawn([process.execPath, join(import.meta.dir, '../main.ts'), 'up', '--data', data], {
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const said = await new Response(second.stderr).text()
  lock?.release()
  expect([await second.exited, said]).toEqual([1, expect.stringContaining(`${data} is in use`)])
  expect(said).toMatch(new RegExp(`, process ${process.pid}\\n`))
})

test('reports an address in use, with its flag', () => {
  const holder = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: () => undefined } })
  const settings = settingsSchema.parse({ gateway_listen: `127.0.0.1:${holder.port}` })
  let thrown: unknown = null
  try {
    reserveAddress(settings.gateway_listen)
  } catch (error) {
    thrown = startFailure(error, settings, 'gateway_listen')
  }
  holder.stop(true)
  const message = `Cannot listen at 127.0.0.1:${holder.port} (--gateway-listen): another process listens there`
  expect(thrown).toMatchObject({ code: 'address_in_use', message })
})

test('reports an unexpected error by its own text, also when a failure wraps it', () => {
  const settings = settingsSchema.parse({})
  const cause = new Error('UNIQUE constraint failed: models.id')
  for (const thrown of [cause, new Failure('internal', { cause })]) {
    expect(startFailure(thrown, settings, 'control_plane_listen')).toMatchObject({
      code: 'process_failed',
      message: 'The control plane could not start: UNIQUE constraint failed: models.id',
    })
  }
  const failure = startFailure(new Failure('dependency_unavailable', { cause }), settings, 'control_plane_listen')
  expect(failure.code).toBe('dependency_unavailable')
  expect(failure.message).toEndWith('The cause: UNIQUE constraint failed: models.id')
})

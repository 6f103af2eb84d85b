import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { lockHolder } from './host/lock-holder.ts'
import { lockDirectory } from './lock.ts'

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-lock-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** POSIX locks never conflict within a process, so the second holder is another one. */
async function lockedElsewhere(path: string): Promise<boolean> {
  const script = `
    import { lockDirectory } from ${JSON.stringify(join(import.meta.dir, 'lock.ts'))}
    console.log(lockDirectory(${JSON.stringify(path)}) === null)`
  const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe', stderr: 'inherit' })
  return (await new Response(child.stdout).text()).trim() === 'true'
}

test('holds a lock without references to it until it is released', async () => {
  const path = join(directory, 'kept')
  const release = (() => {
    const lock = lockDirectory(path)
    return () => lock?.release()
  })()
  Bun.gc(true)
  expect(await lockedElsewhere(path)).toBe(true)
  release()
  expect(await lockedElsewhere(path)).toBe(false)
})

test('a lock whose holder is forgotten outlives the garbage collector', async () => {
  const path = join(directory, 'forgotten')
  expect(lockDirectory(path)).not.toBeNull()
  for (let round = 0; round < 5; round++) Bun.gc(true)
  expect(await lockedElsewhere(path)).toBe(true)
})

test('the holder of a lock is found without taking it', () => {
  const path = join(directory, 'locked')
  expect(lockHolder(join(path, 'lock'))).toEqual({ kind: 'free' })
  const lock = lockDirectory(path)
  expect(lockHolder(join(path, 'lock'))).toEqual({ kind: 'held', pid: process.pid })
  lock?.release()
  expect(lockHolder(join(path, 'lock'))).toEqual({ kind: 'free' })
})

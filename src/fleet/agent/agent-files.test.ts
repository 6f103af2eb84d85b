import { afterEach, beforeEach, expect, test } from 'bun:test'
import { copyFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newId } from '../../lib/ids.ts'
import { WorkerFiles } from './agent-files.ts'

let directory: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-worker-'))
})

afterEach(() => {
  rmSync(directory, { recursive: true, force: true })
})

const open = () => new WorkerFiles(directory, 'token', newId)

test('an instance that was killed while retiring does not start again as the same instance', () => {
  const file = join(directory, 'instance.json')
  const former = open()
  copyFileSync(file, `${file}.kept`)
  former.retire('chain_fork', 7)
  copyFileSync(`${file}.kept`, file)
  writeFileSync(join(directory, 'agreed'), '{"seq":9,"digest":"of the former chain"}')
  const next = open()
  expect(next.instanceId).not.toBe(former.instanceId)
  expect(next.ended()).toMatchObject([{ instance_id: former.instanceId, after: 7 }])
  expect(existsSync(join(directory, 'agreed'))).toBe(false)
})

test('names a damaged identity file and makes no new identity in its place', () => {
  open()
  writeFileSync(join(directory, 'instance.json'), '{"')
  expect(open).toThrow(
    expect.objectContaining({
      code: 'data_damaged',
      message: expect.stringContaining(`${directory}/instance.json is damaged: restore it, or remove it`),
    }),
  )
})

test('remembers until the next start that another process took the worker over', () => {
  open().fenced(1234)
  expect(open().fencedAt).toBe(1234)
  open().started()
  expect(open().fencedAt).toBeNull()
})

test('keeps the same instance after a restart', () => {
  expect(open().instanceId).toBe(open().instanceId)
})

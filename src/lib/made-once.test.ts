import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readIfThere, readOrMake } from './made-once.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-made-once-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

test('creates a file once, readable by its owner only, and leaves no temporary file', () => {
  const path = join(directory, 'key')
  expect(readIfThere(path)).toBeNull()
  expect(readOrMake(path, () => 'first')).toBe('first')
  expect(readOrMake(path, () => 'second')).toBe('first')
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(readdirSync(directory)).toEqual(['key'])
})

test('the second of two simultaneous creators takes the file of the first', () => {
  const path = join(directory, 'key')
  const second = readOrMake(path, () => {
    writeFileSync(path, 'first')
    return 'second'
  })
  expect(second).toBe('first')
  expect(readdirSync(directory)).toEqual(['key'])
})

test('does not replace a file that cannot be read', () => {
  expect(() => readOrMake(directory, () => 'new')).toThrow('EISDIR')
})

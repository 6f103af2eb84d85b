/** The file that workers share: what is found again, what its size is, and what a damaged file or a full disk does. */
import { afterAll, afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fillDisk } from '../../../test/support/full-disk.ts'
import { silentLog } from '../../lib/log/log.ts'
import { AnswerCache } from './answer-cache.ts'
import { CacheFile, type KeptAnswer } from './cache-file.ts'

const mebibyte = 1024 * 1024
let directory: string
let path: string
let warnings: string[]
const opened: CacheFile[] = []
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'answers-'))
  path = join(directory, 'answers.db')
  warnings = []
})
afterEach(() => {
  for (const file of opened.splice(0)) file.close()
  rmSync(directory, { recursive: true })
})

function open(mostBytes = 64 * mebibyte, at = path): CacheFile {
  const warn = (_: unknown, message: string) => void warnings.push(message)
  const file = new CacheFile(at, mostBytes, { ...silentLog, warn })
  opened.push(file)
  return file
}
const answer = (text: string, more: Partial<KeptAnswer> = {}): KeptAnswer => ({
  model: 'm',
  contentType: 'application/json',
  body: new TextEncoder().encode(text),
  keptAt: 1,
  expiresAt: 100,
  stateVersion: 5,
  ...more,
})
const textOf = (found: KeptAnswer | null) => (found === null ? null : new TextDecoder().decode(found.body))
function keep(file: CacheFile, key: string, kept: KeptAnswer): void {
  file.put(key, kept)
  file.write()
}

test('finds what another worker has kept, and makes no file before', () => {
  const [one, other] = [open(), open()]
  expect([one.get('a'), existsSync(path)]).toEqual([null, false])
  keep(one, 'a', answer('first'))
  expect(other.get('a')).toEqual({ ...answer(''), body: Buffer.from('first') })
  keep(other, 'a', answer('second'))
  expect([textOf(one.get('a')), one.get('b')]).toEqual(['second', null])
})

test('gives an answer before it is written, and writes it when it is closed', () => {
  const one = open()
  one.put('a', answer('waits'))
  expect([textOf(one.get('a')), existsSync(path)]).toEqual(['waits', false])
  one.close()
  expect(textOf(open().get('a'))).toBe('waits')
})

test('keeps answers after more were removed before they were written than may wait', () => {
  const file = open()
  const long = answer('x'.repeat(4 * mebibyte))
  for (let at = 0; at < 10; at++) {
    file.put('a', long)
    file.delete('a')
  }
  for (let at = 0; at < 10; at++) file.put('b', long)
  keep(file, 'c', answer('kept'))
  expect([file.get('a'), file.get('b')?.body.length, textOf(file.get('c'))]).toEqual([null, 4 * mebibyte, 'kept'])
})

test('keeps nothing that was cleared before it was written', () => {
  const file = open()
  file.put('a', answer('cleared'))
  file.sweep(1, new Map([['m', 7]]))
  expect([file.get('a'), open().get('a')]).toEqual([null, null])
})

test('all its files are for the owner alone', () => {
  keep(open(), 'a', answer('text'))
  const modes = readdirSync(directory).map((name) => [name, statSync(join(directory, name)).mode & 0o777])
  expect(modes.length).toBeGreaterThan(1)
  expect(modes.filter(([, mode]) => mode !== 0o600)).toEqual([])
})

test('stays within its size, and the oldest go first', () => {
  const most = 4 * mebibyte
  const file = open(most)
  const text = 'x'.repeat(100_000)
  for (let at = 0; at < 100; at++) keep(file, `key-${at}`, answer(text, { keptAt: at }))
  expect(statSync(path).size).toBeLessThanOrEqual(most)
  expect(file.get('key-0')).toBe(null)
  expect(textOf(file.get('key-99'))).toBe(text)
  expect(warnings).toEqual([])
})

test('removes what has expired or was cleared, and no text of it stays', () => {
  const file = open()
  keep(file, 'old', answer('expired-text', { expiresAt: 10 }))
  keep(file, 'cleared', answer('cleared-text', { model: 'gone', stateVersion: 5 }))
  keep(file, 'newer', answer('newer', { model: 'gone', stateVersion: 7 }))
  keep(file, 'other', answer('other'))
  const clears = new Map([['gone', 7]])
  file.sweep(10, clears)
  expect(['old', 'cleared', 'newer', 'other'].map((key) => textOf(file.get(key)))).toEqual([
    null,
    null,
    'newer',
    'other',
  ])
  const bytes = readdirSync(directory).map((name) => readFileSync(join(directory, name), 'latin1'))
  expect(bytes.join('')).not.toMatch(/expired-text|cleared-text/)
  open().sweep(10, new Map([['*', 9]]))
  expect(open().get('other')).toBe(null)
})

test('a file that is no database is begun anew, with one warning', () => {
  writeFileSync(path, 'x'.repeat(10_000))
  const file = open()
  expect(file.get('a')).toBe(null)
  keep(file, 'a', answer('kept'))
  expect(textOf(file.get('a'))).toBe('kept')
  expect(warnings.length).toBe(1)
})

test('a damaged answer is not given', () => {
  const file = open()
  keep(file, 'a', answer('y'.repeat(20_000)))
  file.close()
  const bytes = readFileSync(path)
  bytes.write('z', bytes.lastIndexOf('yyyy'))
  writeFileSync(path, bytes)
  expect(open().get('a')).toBe(null)
})

test('a directory that is missing fails nothing', () => {
  const missing = open(mebibyte, join(directory, 'absent', 'answers.db'))
  keep(missing, 'a', answer('lost'))
  expect([missing.get('a'), warnings.length]).toEqual([null, 1])
})

/** Mounting needs a right; where it is missing the test says so and is skipped. */
const small = mkdtempSync(join(tmpdir(), 'answers-disk-'))
const mounted = Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', small]).exitCode === 0
if (!mounted) console.warn('The test of a full disk is skipped: mounting a tmpfs is not permitted here')
afterAll(() => {
  if (mounted) Bun.spawnSync(['umount', '-l', small])
  rmSync(small, { recursive: true, force: true })
})

test.skipIf(!mounted)('a full disk fails nothing, and answers are kept again when there is room', () => {
  const file = open(64 * mebibyte, join(small, 'answers.db'))
  keep(file, 'before', answer('before'))
  fillDisk(join(small, 'ballast'))
  keep(file, 'a', answer('x'.repeat(100_000)))
  expect([textOf(file.get('before')), file.get('a')]).toEqual(['before', null])
  rmSync(join(small, 'ballast'))
  keep(file, 'after', answer('after'))
  expect(textOf(file.get('after'))).toBe('after')
})

test('an answer that is larger than the whole file is left out, and the file goes on', () => {
  const file = open(mebibyte)
  keep(file, 'large', answer('x'.repeat(2 * mebibyte)))
  keep(file, 'small', answer('small'))
  expect([file.get('large'), textOf(file.get('small'))]).toEqual([null, 'small'])
})

test('workers of a host find answers in each other’s file, and hold their memory to its size', () => {
  const options = { log: silentLog, now: () => 1, clears: () => new Map() }
  const settings = { cache_memory_bytes: mebibyte, cache_file_bytes: 64 * mebibyte }
  const [one, other] = [new AnswerCache(settings, path, options), new AnswerCache(settings, path, options)]
  for (let at = 0; at < 20; at++) one.put(`${at}`, answer('x'.repeat(100_000)))
  expect(one.memoryBytes).toBeLessThanOrEqual(mebibyte)
  one.close()
  expect([other.get('0', 50)?.body.length, other.get('0', 100)]).toEqual([100_000, null])
  other.close()
})

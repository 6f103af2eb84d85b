import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ReplicaFolders } from './replica-folder.ts'

const log = '92f4ca70-385c-4a91-9ca0-9b54b8fcec1a'
let directory: string
let folders: ReplicaFolders

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-folders-'))
  folders = new ReplicaFolders(directory)
})
afterEach(() => {
  rmSync(directory, { recursive: true, force: true })
})

/** As libSQL leaves it: the log's UUID as a little-endian number, then the frame. */
function index(of: string): Buffer {
  const bytes = Buffer.alloc(32)
  Buffer.from(of.replaceAll('-', ''), 'hex').reverse().copy(bytes)
  bytes.writeUInt32LE(56, 16)
  return bytes
}

function wholeFolder(): number {
  const folder = folders.create()
  for (const suffix of ['', '-wal', '-shm']) writeFileSync(`${folders.fileOf(folder)}${suffix}`, 'content')
  writeFileSync(`${folders.fileOf(folder)}-client_wal_index`, index(log))
  folders.follow(folder, log)
  return folder
}

test('reads a folder once it is named, and removes the others', () => {
  const [first, second] = [wholeFolder(), wholeFolder()]
  expect(folders.current).toBeNull()
  folders.name(first)
  expect(folders.current).toBe(first)
  folders.name(second)
  expect(folders.file).toBe(join(directory, 'current', 'state.db'))
  folders.prune([folders.current])
  expect(readdirSync(directory).toSorted()).toEqual(['2', 'current'])
  expect(folders.create()).toBe(3)
  folders.unname()
  expect(folders.current).toBeNull()
})

test('a folder is complete with its four files and the log that they follow', () => {
  expect(folders.faultOf(wholeFolder())).toBeNull()
  for (const suffix of ['', '-wal', '-shm', '-client_wal_index']) {
    const folder = wholeFolder()
    rmSync(`${folders.fileOf(folder)}${suffix}`)
    expect(folders.faultOf(folder)).toBe(`state.db${suffix} is missing`)
  }
  const empty = wholeFolder()
  truncateSync(folders.fileOf(empty), 0)
  expect(folders.faultOf(empty)).toContain('missing')
  const nameless = wholeFolder()
  rmSync(join(directory, String(nameless), 'log'))
  expect(folders.faultOf(nameless)).toContain('log')
})

test('finds an index that is truncated or belongs to another log', () => {
  const cut = wholeFolder()
  truncateSync(`${folders.fileOf(cut)}-client_wal_index`, 31)
  expect(folders.faultOf(cut)).toContain('another size')
  const other = wholeFolder()
  writeFileSync(`${folders.fileOf(other)}-client_wal_index`, index('00000000-385c-4a91-9ca0-9b54b8fcec1a'))
  expect(folders.faultOf(other)).toContain('another log')
})

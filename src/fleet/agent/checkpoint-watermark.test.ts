import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Event } from '../../events/event.ts'
import { type Checkpoint, checkpointBody, longestCheckpoint } from '../../events/proof/checkpoint.ts'
import { newId } from '../../lib/ids.ts'
import { type Log, silentLog } from '../../lib/log/log.ts'
import { stateMigrations } from '../../store/schema/migrate.ts'
import { CheckpointWatermark } from './checkpoint-watermark.ts'

let directory: string
let state: Database
let recorded: Event[]
let now = 1_000_000
const made: CheckpointWatermark[] = []

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-witness-'))
  state = new Database(join(directory, 'state.db'), { create: true })
  for (const { sql } of stateMigrations) state.run(sql)
  recorded = []
})
afterEach(() => {
  for (const watermark of made.splice(0)) watermark.stop()
  state.close()
  rmSync(directory, { recursive: true, force: true })
})

const keptFile = () => join(directory, 'checkpoint.json')

function watermark(log: Log = silentLog): CheckpointWatermark {
  const started = new CheckpointWatermark({
    stateFile: join(directory, 'state.db'),
    keptFile: keptFile(),
    clock: { now: () => now },
    newId,
    log,
    record: (event) => recorded.push(event),
    gatewayId: () => 'gateway',
  })
  made.push(started)
  return started
}

function put(number: number, seq: number, change: Partial<Checkpoint> = {}): void {
  const point = { seq, digest: 'digest', arrivals: 'arrivals' }
  const body =
    number === 0
      ? ''
      : checkpointBody({
          ...{ number, at: number, heads: new Map([['chain', point]]) },
          ...{ series: 'one', kept: [], removed: 0 },
          ...change,
        })
  state.run('update checkpoints set number = ?, body = ?, key_id = ?, signature = ?', [
    number,
    body,
    'key',
    `${number}/${seq}`,
  ])
}

const keptNumber = (): unknown => JSON.parse(JSON.parse(readFileSync(keptFile(), 'utf8')).body).number

test('keeps the highest checkpoint over restarts and records nothing while checkpoints rise', () => {
  watermark().look()
  put(1, 5)
  watermark().look()
  expect(keptNumber()).toBe(1)
  put(3, 5)
  const later = watermark()
  later.look()
  later.look()
  expect(keptNumber()).toBe(3)
  expect(later.regressions).toBe(0)
  expect(recorded).toEqual([])
})

for (const [how, number, seq] of [
  ['older', 1, 9],
  ['other', 2, 9],
  ['chain_shorter', 3, 4],
  ['not_a_checkpoint', 0, 0],
] as const) {
  test(`records a checkpoint that went back once and never keeps it: ${how}`, () => {
    put(2, 5)
    watermark().look()
    put(number, seq)
    const looking = watermark()
    looking.look()
    now += 30_000
    looking.look()
    looking.look()
    expect(looking.regressions).toBe(1)
    expect(recorded).toMatchObject([
      { event_type: 'gateway.checkpoint_regressed', verdict: 'error', details: { how, seen: 2 } },
    ])
    expect(keptNumber()).toBe(2)
  })
}

for (const [how, sql] of [
  ['emptied', "update checkpoints set number = 0, body = '', key_id = '', signature = ''"],
  ['deleted', 'delete from checkpoints'],
] as const) {
  test(`records once that a state's checkpoint was ${how}`, () => {
    put(3, 5)
    watermark().look()
    state.run(sql)
    const looking = watermark()
    looking.look()
    now += 30_000
    looking.look()
    looking.look()
    expect(looking.regressions).toBe(1)
    expect(recorded).toMatchObject([{ details: { how: 'not_a_checkpoint', seen: 3, found: null } }])
  })
}

for (const [how, change] of [
  ['chain_missing', { heads: new Map() }],
  ['begun_anew', { series: 'another' }],
] as const) {
  test(`records a newer checkpoint that leaves something out: ${how}`, () => {
    put(2, 5)
    watermark().look()
    put(3, 6, change)
    watermark().look()
    expect(recorded).toMatchObject([{ details: { how, seen: 2, found: 3 } }])
  })
}

test('does not record a restored state that has the newest checkpoint again within seconds', () => {
  put(2, 5)
  const looking = watermark()
  looking.look()
  for (const [number, seq] of [
    [1, 4],
    [2, 5],
    [1, 4],
    [3, 6],
  ] as const) {
    put(number, seq)
    looking.look()
    now += 20_000
    looking.look()
  }
  expect(looking.regressions).toBe(0)
  expect(recorded).toEqual([])
  expect(keptNumber()).toBe(3)
})

test('detects an older file that replaces the state while running', () => {
  put(2, 5)
  const older = join(directory, 'older.db')
  state.run('vacuum into ?', [older])
  const looking = watermark()
  put(3, 6)
  looking.look()
  expect(keptNumber()).toBe(3)
  renameSync(older, join(directory, 'state.db'))
  looking.look()
  now += 30_000
  looking.look()
  expect(recorded).toMatchObject([{ details: { how: 'older', seen: 3, found: 2 } }])
})

test('accepts that retention removed a whole chain', () => {
  put(2, 5)
  watermark().look()
  put(3, 6, { heads: new Map(), removed: 1 })
  watermark().look()
  expect(recorded).toEqual([])
})

const chains = (count: number, seq: number) =>
  new Map(
    Array.from({ length: count }, (_, index) => [
      `018f0000-0000-7000-8000-${String(index).padStart(12, '0')}/instance/0`,
      { seq, digest: 'd'.repeat(64), arrivals: 'a'.repeat(64) },
    ]),
  )

test('compares the checkpoints of forty thousand chains', () => {
  put(2, 5, { heads: chains(40_000, 5) })
  watermark().look()
  expect(keptNumber()).toBe(2)
  put(3, 6, { heads: chains(40_000, 4) })
  watermark().look()
  expect(recorded).toMatchObject([{ details: { how: 'chain_shorter', seen: 2, found: 3 } }])
})

test('warns once of a checkpoint that is too long to compare, and keeps the one before it', () => {
  const warned: string[] = []
  const looking = watermark({ ...silentLog, warn: (_: object, text: string) => warned.push(text) })
  put(1, 5)
  looking.look()
  put(2, 6, { heads: chains(100_000, 6) })
  looking.look()
  looking.look()
  expect(warned).toEqual([expect.stringContaining('too many chains to be compared')])
  expect(keptNumber()).toBe(1)
  put(3, 7)
  looking.look()
  expect(keptNumber()).toBe(3)
})

test('reads nothing of the body while the checkpoint is the kept one', () => {
  put(1, 5)
  const looking = watermark()
  looking.look()
  // A text that is too long would be reported, if it were looked at.
  state.run('update checkpoints set body = ?', ['x'.repeat(longestCheckpoint + 1)])
  const warned: string[] = []
  watermark({ ...silentLog, warn: (_: object, text: string) => warned.push(text) }).look()
  looking.look()
  expect(warned).toEqual([])
  expect(keptNumber()).toBe(1)
})

test('compares a reported checkpoint no second time', () => {
  put(2, 5)
  const looking = watermark()
  looking.look()
  put(3, 4)
  looking.look()
  expect(looking.regressions).toBe(1)
  const { body } = state.query<{ body: string }, []>('select body from checkpoints').get() ?? { body: '' }
  // It would be kept if it were compared.
  state.run('update checkpoints set body = ?', [body.replace('"chain",4', '"chain",6')])
  looking.look()
  expect(keptNumber()).toBe(2)
})

test('measures a checkpoint in bytes', () => {
  const warned: object[] = []
  const looking = watermark({ ...silentLog, warn: (fields: object) => warned.push(fields) })
  put(1, 5)
  looking.look()
  state.run("update checkpoints set number = 2, signature = 'new', body = ?", ['é'.repeat(longestCheckpoint / 2 + 1)])
  looking.look()
  expect(warned).toEqual([{ length: longestCheckpoint + 2, longest: longestCheckpoint }])
})

test('treats a damaged watermark file as none', () => {
  writeFileSync(keptFile(), '{')
  put(1, 5)
  watermark().look()
  expect(keptNumber()).toBe(1)
})

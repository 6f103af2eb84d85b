/** Segment files that are only kept: compressed, readable from any place, and one of each after any kill. */
import { afterEach, expect, test } from 'bun:test'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { eventually, until } from '../../../test/support/eventually.ts'
import { testEvent } from '../../events/testing/ledger.ts'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log/log.ts'
import { closeIn, openIn } from '../testing/outbox-exchanges.ts'
import { Outbox, type OutboxOptions } from './outbox.ts'
import { packFile, readRecords } from './packed.ts'
import { eventBody, parseEventRecord } from './record.ts'
import { inspectOutbox } from './recovery.ts'
import { listSegments, segmentPath, systemWrite } from './segment.ts'

const directories: string[] = []
const outboxes: Outbox[] = []
afterEach(async () => {
  for (const outbox of outboxes.splice(0)) await outbox.end().catch(() => undefined)
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true })
})

function emptyDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-packed-'))
  directories.push(directory)
  return directory
}

const segmentBytes = 64 * 1024

/** Acknowledgements look for what can be packed at most once in a second, so the clock runs fast. */
const fastClock = { now: () => systemClock.now(), monotonic: () => 1000 * systemClock.monotonic() }

function start(directory: string, options: Partial<OutboxOptions> = {}): Outbox {
  const outbox = new Outbox({
    ...{ directory, segmentBytes, limitBytes: 8 * 1024 * 1024, keepMs: 3_600_000, bootId: 'boot' },
    ...{ write: systemWrite, freeBytes: () => Number.POSITIVE_INFINITY, clock: fastClock, hostTime: Date.now },
    log: silentLog,
    ...options,
  })
  outboxes.push(outbox)
  return outbox
}

const fill = async (outbox: Outbox, count: number): Promise<void> => {
  // Refusals would be limited: a fast machine writes more than 100 in a second of the fast clock.
  for (let each = 0; each < count; each++) {
    await outbox.add([testEvent({ details: { each, text: 'x'.repeat(1000) } })])
  }
}

/** The texts of all records behind number `after`. */
function texts(outbox: Outbox, after = 0): string[] {
  const reader = outbox.reader()
  const found: string[] = []
  for (;;) {
    const events = reader.read(after + found.length, 7)
    if (events.length === 0) break
    found.push(...events.map(({ record }) => eventBody(record).toString()))
  }
  reader.close()
  return found
}

const packedIn = (directory: string): number[] =>
  listSegments(directory).filter((index) => readFileSync(segmentPath(directory, index)).readUInt32BE(0) === 0xffffffff)

/** Acknowledges all until so many segments are packed. */
async function acknowledge(outbox: Outbox, directory: string, count: number, upTo = outbox.lastEvent): Promise<void> {
  await outbox.durable()
  await until('the segments are packed', () => {
    outbox.shipped(upTo)
    return packedIn(directory).length === count
  })
}

test('packs each segment that the control plane has, but not the current one, and reads it from any number', async () => {
  const directory = emptyDirectory()
  const outbox = start(directory)
  await fill(outbox, 300)
  const [all, before] = [texts(outbox), outbox.bytes]
  const reader = outbox.reader()
  const first = reader.read(0, 3).map(({ record }) => eventBody(record).toString())
  const segments = listSegments(directory).length
  expect(segments).toBeGreaterThan(4)
  await acknowledge(outbox, directory, segments - 1)
  expect(packedIn(directory)).not.toContain(segments)
  expect(outbox.bytes).toBeLessThan(before / 2)
  const sizes = readdirSync(directory).map((name) => statSync(join(directory, name)).size)
  expect(outbox.bytes).toBe(sizes.reduce((sum, size) => sum + size, 0))
  expect(outbox.oldestEvent).toBe(1)
  expect(texts(outbox)).toEqual(all)
  for (const after of [1, 77, 150, 298]) expect(texts(outbox, after)).toEqual(all.slice(after))
  const rest = reader.read(3, 1000).map(({ record }) => eventBody(record).toString())
  expect([...first, ...rest]).toEqual(all.slice(0, 3 + rest.length))
  reader.close()
})

test('continues after a restart with packed segments, whose times stay', async () => {
  const directory = emptyDirectory()
  const outbox = start(directory)
  await fill(outbox, 200)
  const all = texts(outbox)
  const times = () =>
    listSegments(directory).map((index) => Math.floor(statSync(segmentPath(directory, index)).mtimeMs))
  const [segments, written] = [listSegments(directory).length, times()]
  await acknowledge(outbox, directory, segments - 1)
  expect(times().slice(0, -1)).toEqual(written.slice(0, -1))
  const after = start(directory)
  expect(after.recovered.dropped).toBeNull()
  await fill(after, 1)
  expect(texts(after).slice(0, -1)).toEqual(all)
  expect(inspectOutbox(directory)).toMatchObject({ events: 201, damage: null })
})

test('packs segments of an earlier process, also those that the start did not read', async () => {
  const directory = emptyDirectory()
  const outbox = start(directory)
  await fill(outbox, 200)
  await outbox.end()
  const after = start(directory)
  const all = texts(after)
  await acknowledge(after, directory, listSegments(directory).length - 1)
  expect(texts(after)).toEqual(all)
})

test('leaves a segment as it is while an exchange of it is open, or a revocation of it is needed', async () => {
  const directory = emptyDirectory()
  const outbox = start(directory)
  await openIn(outbox, 'open', testEvent({ exchange_id: 'open' }))
  await fill(outbox, 100)
  const position = { history: 'h', version: 7 }
  await outbox.recordRevocations(position, ['hash'], position)
  const [, second = 0] = [1, listSegments(directory).at(-1)]
  await fill(outbox, 100)
  const segments = listSegments(directory)
  await acknowledge(outbox, directory, segments.length - 3)
  expect(packedIn(directory)).toEqual(segments.filter((index) => ![1, second, segments.at(-1)].includes(index)))
  await closeIn(outbox, 'open', testEvent({ exchange_id: 'open' }))
  outbox.applied(position)
  await acknowledge(outbox, directory, segments.length - 1)
})

test('keeps packed segments no longer than the configured time and the limit allow', async () => {
  const directory = emptyDirectory()
  let now = Date.now()
  const outbox = start(directory, { clock: { ...fastClock, now: () => now } })
  await fill(outbox, 200)
  await acknowledge(outbox, directory, listSegments(directory).length - 1)
  now += 3_700_000
  await eventually(() => {
    outbox.shipped(outbox.lastEvent)
    return listSegments(directory).length === 1
  })
})

test('finds one usable form of each segment after a kill at any step of packing', async () => {
  const directory = emptyDirectory()
  const outbox = start(directory)
  await fill(outbox, 120)
  const all = texts(outbox)
  await outbox.durable()
  const path = segmentPath(directory, 1)
  const plain = readFileSync(path)
  const length = readRecords(path).bytes.findLastIndex((byte) => byte !== 0) + 1
  const killed: string[] = []
  const kill = (change: (copy: string) => void) => {
    const copy = emptyDirectory()
    cpSync(directory, copy, { recursive: true })
    change(copy)
    killed.push(copy)
  }
  expect(await packFile(path, length, () => false)).toBeNull()
  expect(readFileSync(path).equals(plain)).toBe(true)
  const size = await packFile(path, length, () => {
    for (const part of [0, 1, 100, 1000])
      kill((copy) => writeFileSync(join(copy, '00000001.segment.new'), plain.subarray(0, part)))
    kill(() => undefined)
    return true
  })
  expect(statSync(path).size).toBe(size ?? 0)
  kill(() => undefined)
  for (const copy of killed) {
    const recovered = start(copy)
    expect(recovered.recovered.dropped).toBeNull()
    expect(texts(recovered)).toEqual(all)
    expect(readdirSync(copy).filter((name) => name.startsWith('00000001'))).toEqual(['00000001.segment'])
  }
})

test('makes nothing up from a packed segment in which a bit was flipped', async () => {
  const directory = emptyDirectory()
  const outbox = start(directory)
  await fill(outbox, 100)
  const all = texts(outbox)
  await acknowledge(outbox, directory, listSegments(directory).length - 1)
  const place = fc.double({ min: 0, max: 0.9999, noNaN: true })
  await fc.assert(
    fc.asyncProperty(place, fc.integer({ min: 0, max: 7 }), async (where, bit) => {
      const copy = emptyDirectory()
      cpSync(directory, copy, { recursive: true })
      const path = segmentPath(copy, 2)
      const bytes = readFileSync(path)
      const at = Math.floor(where * bytes.length)
      bytes[at] = (bytes[at] ?? 0) ^ (1 << bit)
      writeFileSync(path, bytes)
      const damaged = start(copy)
      let found: string[] = []
      try {
        found = texts(damaged)
      } catch (error) {
        expect(error).toMatchObject({ code: 'dependency_unavailable' })
      }
      expect(found).toEqual(all.slice(0, found.length))
      await fill(damaged, 1)
      expect(texts(damaged, damaged.lastEvent - 1)).toHaveLength(1)
    }),
    { numRuns: 40 },
  )
})

test('a recovery that needs a packed segment reads its exchanges and cuts it where it is damaged', async () => {
  const directory = emptyDirectory()
  const outbox = start(directory)
  await openIn(outbox, 'open', testEvent({ exchange_id: 'open' }))
  await fill(outbox, 100)
  const path = segmentPath(directory, 2)
  await outbox.durable()
  await packFile(path, readRecords(path).bytes.findLastIndex((byte) => byte !== 0) + 1, () => true)
  const all = texts(outbox)
  const whole = start(directory)
  expect(whole.recovered).toMatchObject({ interrupted: 1, dropped: null, events: 100 })
  expect(texts(whole).slice(0, 100)).toEqual(all)
  const copy = emptyDirectory()
  cpSync(directory, copy, { recursive: true })
  const bytes = readFileSync(segmentPath(copy, 2))
  bytes[bytes.length - 9] = (bytes.at(-9) ?? 0) ^ 1
  writeFileSync(segmentPath(copy, 2), bytes)
  const cut = start(copy)
  expect(cut.recovered.dropped).toMatchObject({ segment: 2 })
  const left = cut.recovered.events
  expect(texts(cut).slice(0, left)).toEqual(all.slice(0, left))
  expect(parseEventRecord(cut.reader().read(cut.lastEvent - 1, 1)[0]?.record ?? Buffer.alloc(0)).n).toBe(cut.lastEvent)
})

/** The journal through full disks, torn writes and crashes at any byte; long because each rule has its test here. */
import { afterEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { type Event, noAttribution } from '../../events/event.ts'
import type { InnerEvent, LogRecord } from '../../events/log/record.ts'
import { systemClock, timestamp } from '../../lib/clock.ts'
import { hostTime } from '../../lib/host/host-time.ts'
import { newId } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log/log.ts'
import { closeIn, openIn } from '../testing/outbox-exchanges.ts'
import { Outbox, type OutboxOptions } from './outbox.ts'
import { parseEventRecord } from './record.ts'
import { listSegments, segmentPath, systemWrite, type Write } from './segment.ts'

const mebibyte = 1024 * 1024
const directories: string[] = []
const started: Outbox[] = []

afterEach(async () => {
  for (const outbox of started.splice(0)) await outbox.end().catch(() => undefined)
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true })
})

function emptyDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-outbox-'))
  directories.push(directory)
  return directory
}

function start(directory: string, options: Partial<OutboxOptions> = {}): Outbox {
  const outbox = new Outbox({
    directory,
    segmentBytes: 128 * 1024,
    limitBytes: 8 * 1024 * 1024,
    keepMs: 0,
    bootId: 'boot',
    write: systemWrite,
    freeBytes: () => Number.POSITIVE_INFINITY,
    clock: systemClock,
    hostTime: hostTime(systemClock),
    log: silentLog,
    ...options,
  })
  started.push(outbox)
  return outbox
}

function event(details: Record<string, unknown> = {}, exchangeId?: string): Event {
  return {
    event_id: newId(),
    event_type: exchangeId === undefined ? 'gateway.provider.attempt' : 'gateway.request.outcome',
    request_id: 'request',
    timestamp: timestamp(Date.now()),
    verdict: 'allow',
    reason_code: 'ok',
    config_version: 1,
    event_attribution: { ...noAttribution, token_id: 'token' },
    ...(exchangeId === undefined ? {} : { exchange_id: exchangeId }),
    details,
  }
}

/** Attempts of a usual size. */
const inner = (length: number): InnerEvent[] =>
  Array.from({ length }, () => ({
    ...{ event_id: newId(), verdict: 'allow', reason_code: 'ok' },
    details: { provider: 'upstream', text: 'x'.repeat(300) },
  }))

/** Everything that stands in the outbox, as it would be shipped. */
function contents(outbox: Outbox): { n: number; event: LogRecord; closes: string | null }[] {
  const reader = outbox.reader()
  const all: { n: number; event: LogRecord; closes: string | null }[] = []
  for (;;) {
    const events = reader.read(all.length, 7)
    if (events.length === 0) break
    for (const { record } of events) {
      const { n, body, closes } = parseEventRecord(record)
      all.push({ n, closes, event: JSON.parse(body) })
    }
  }
  reader.close()
  return all
}

/** What a promise rejects with. (`expect().rejects` turns the event loop itself, slowly where there are many ticks.) */
const failureOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => null,
    (error: unknown) => error,
  )

const ids = (events: readonly { event: LogRecord }[]): string[] => events.map((each) => each.event.event_id)

describe('an outbox', () => {
  test('numbers events in order and reads them back byte for byte', async () => {
    const outbox = start(emptyDirectory())
    const events = [event({ text: 'é"body":\n😀' }), event(), event()]
    await Promise.all(events.map((each) => outbox.refuse(each)))
    expect(contents(outbox).map(({ n }) => n)).toEqual([1, 2, 3])
    expect(contents(outbox).map((each) => each.event)).toEqual(events)
  })

  test('writes all appends of a tick with one write', async () => {
    let writes = 0
    const outbox = start(emptyDirectory(), {
      write(...args) {
        writes++
        return systemWrite(...args)
      },
    })
    writes = 0
    await Promise.all([
      openIn(outbox, 'a', event({}, 'a')),
      openIn(outbox, 'b', event({}, 'b')),
      outbox.refuse(event()),
    ])
    expect(writes).toBe(1)
  })

  test('never reads records of a failed batch back', async () => {
    const directory = emptyDirectory()
    let torn = false
    const write: Write = (...args) => {
      const written = systemWrite(...args)
      if (!torn) return written
      torn = false
      throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
    }
    const outbox = start(directory, { write })
    const [first, lost, alsoLost, last] = [event(), event(), event(), event()]
    await outbox.refuse(first)
    torn = true
    expect(await failureOf(Promise.all([outbox.refuse(lost), outbox.refuse(alsoLost)]))).toMatchObject({
      code: 'event_outbox_full',
    })
    await outbox.refuse(last)
    expect(ids(contents(start(directory)))).toEqual([first.event_id, last.event_id])
  })

  test('continues after a partial write', async () => {
    const directory = emptyDirectory()
    const partial: Write = (fd, bytes, offset, length, position) =>
      systemWrite(fd, bytes, offset, Math.min(length, 1009), position)
    const outbox = start(directory, { write: partial })
    const events = Array.from({ length: 20 }, (_, index) => event({ index }))
    await outbox.add(events)
    expect(ids(contents(start(directory)))).toEqual(events.map((each) => each.event_id))
  })

  test('writes the outcome kept in the open record for an exchange that a kill interrupted', async () => {
    const directory = emptyDirectory()
    const outbox = start(directory)
    const interrupted = event({}, 'lost')
    await openIn(outbox, 'lost', interrupted)
    await openIn(outbox, 'ended', event({}, 'ended'))
    const outcome = event({}, 'ended')
    await closeIn(outbox, 'ended', outcome)
    const after = start(directory)
    expect(after.recovered).toMatchObject({ interrupted: 1, closed: false, bootId: 'boot', dropped: null })
    expect(contents(after).filter(({ closes }) => closes !== null)).toMatchObject([
      { closes: 'ended', event: outcome },
      { closes: 'lost', event: interrupted },
    ])
    expect(start(directory).recovered.interrupted).toBe(0)
  })

  test('tells a clean stop from a kill', async () => {
    const directory = emptyDirectory()
    await start(directory).end()
    expect(start(directory).recovered.closed).toBe(true)
    expect(start(directory).recovered.closed).toBe(false)
  })

  test('keeps revocations and the acknowledged version until the state shows them', async () => {
    const directory = emptyDirectory()
    const position = { history: 'h', version: 7 }
    await start(directory).recordRevocations(position, ['one', 'two'], position, 4)
    const after = start(directory)
    expect(after.acknowledged).toEqual(position)
    expect(after.revocations.map(({ hashes, since }) => ({ hashes, since }))).toEqual([
      { hashes: ['one', 'two'], since: 4 },
    ])
    after.applied({ history: 'other', version: 9 })
    expect(after.revocations).toHaveLength(1)
    after.applied(position)
    expect(after.revocations).toHaveLength(0)
  })

  test('drops revocations of another history once the state refuses each of their tokens', async () => {
    const outbox = start(emptyDirectory())
    await outbox.recordRevocations({ history: 'h', version: 7 }, ['one', 'two'], null)
    const other = { history: 'other', version: 1 }
    outbox.applied(other, (hash) => hash === 'one')
    expect(outbox.revocations).toHaveLength(1)
    outbox.applied(other, () => true)
    expect(outbox.revocations).toHaveLength(0)
  })

  test('trims the details of an event that is too large and never loses it', async () => {
    const outbox = start(emptyDirectory())
    const large = event({ route: 'chat', text: '😀'.repeat(5000) })
    const notRetryable: Event = { ...event(), metadata: { key: 'x'.repeat(9000) }, request_id: 'y'.repeat(9000) }
    await outbox.add([large, notRetryable])
    const [first, second] = contents(outbox)
    expect(first?.event).toEqual({ ...large, details: { route: 'chat', trimmed: true } })
    expect(second?.event.event_id).toBe(notRetryable.event_id)
  })

  test('refuses new exchanges at its limit, finishes running ones, and resumes once there is space', async () => {
    const outbox = start(emptyDirectory(), { segmentBytes: 256 * 1024, limitBytes: 1024 * 1024 })
    const open: string[] = []
    const fill = async () => {
      for (;;) {
        const id = newId()
        await openIn(outbox, id, event({ text: 'x'.repeat(3000) }, id))
        open.push(id)
        if (open.length > 20) await closeIn(outbox, open.shift() ?? '', event({ text: 'x'.repeat(3000) }, 'e'))
      }
    }
    expect(await failureOf(fill())).toMatchObject({ code: 'event_outbox_full' })
    const refuse = async () => {
      for (;;) await outbox.refuse(event())
    }
    expect(outbox.full).toBe(true)
    expect(await failureOf(refuse())).toMatchObject({ code: 'event_outbox_full' })
    for (const id of open.splice(0)) {
      await closeIn(outbox, id, { ...event({ text: 'x'.repeat(3900) }, id), attempts: inner(2) })
    }
    expect(outbox.bytes).toBeLessThanOrEqual(1024 * 1024)
    await Bun.sleep(250)
    outbox.shipped(outbox.lastEvent)
    expect(outbox.full).toBe(false)
    await openIn(outbox, 'again', event({}, 'again'))
  })

  test('leaves as much of a small disk free as it has unacknowledged, and keeps nothing longer than needed', async () => {
    const directory = emptyDirectory()
    const used = () => readdirSync(directory).reduce((bytes, name) => bytes + statSync(join(directory, name)).size, 0)
    const freeBytes = () => 12 * mebibyte - used()
    const outbox = start(directory, {
      segmentBytes: 4 * mebibyte,
      limitBytes: 64 * mebibyte,
      keepMs: 3_600_000,
      freeBytes,
    })
    const fill = async () => {
      for (;;) await outbox.add(Array.from({ length: 20 }, () => event({ text: 'x'.repeat(3500) })))
    }
    expect(await failureOf(fill())).toMatchObject({ code: 'event_outbox_full' })
    expect(outbox.bytes).toBeGreaterThan(2 * mebibyte)
    expect(freeBytes()).toBeGreaterThanOrEqual(outbox.bytes + 3 * mebibyte)
    await outbox.durable()
    const shipped = outbox.lastEvent
    outbox.shipped(shipped)
    expect(await failureOf(fill())).toMatchObject({ code: 'event_outbox_full' })
    expect(outbox.lastEvent).toBeGreaterThan(1.3 * shipped)
    expect(outbox.oldestEvent).toBeGreaterThan(1)
  })

  test('reports a full disk before anything is written and leaves nothing of a failed tick behind', async () => {
    const directory = emptyDirectory()
    let full = false
    const write: Write = (...args) => {
      if (full) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
      return systemWrite(...args)
    }
    const outbox = start(directory, { write })
    await openIn(outbox, 'running', event({}, 'running'))
    full = true
    const failed = [openIn(outbox, 'refused', event({}, 'refused')), closeIn(outbox, 'running', event({}, 'running'))]
    for (const each of failed) await expect(each).rejects.toMatchObject({ code: 'event_outbox_full' })
    full = false
    const outcome = event({}, 'running')
    await closeIn(outbox, 'running', outcome)
    expect(contents(outbox)).toMatchObject([{ n: 1, closes: 'running', event: outcome }])
    expect(start(directory).recovered).toMatchObject({ interrupted: 0, dropped: null })
  })

  test('retries to write an outcome that could not be written', async () => {
    let full = false
    const write: Write = (...args) => {
      if (full) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
      return systemWrite(...args)
    }
    const outbox = start(emptyDirectory(), { write })
    await openIn(outbox, 'running', event({}, 'running'))
    full = true
    const end = { ...event({}, 'running'), attempts: inner(3) }
    expect(await failureOf(closeIn(outbox, 'running', end))).toMatchObject({ code: 'event_outbox_full' })
    expect(outbox.openExchanges).toBe(1)
    full = false
    for (let tries = 0; tries < 200 && outbox.lastEvent === 0; tries++) await Bun.sleep(10)
    expect(outbox.openExchanges).toBe(0)
    expect(contents(outbox).map((each) => each.event)).toEqual([end])
  })

  test('opens nothing while an outcome is not written, since its amounts are not free yet', async () => {
    let full = false
    const write: Write = (...args) => {
      if (full) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
      return systemWrite(...args)
    }
    const outbox = start(emptyDirectory(), { write })
    await openIn(outbox, 'running', event({}, 'running'))
    full = true
    await failureOf(closeIn(outbox, 'running', event({}, 'running')))
    full = false
    expect([outbox.hasUnwrittenOutcomes, outbox.full]).toEqual([true, true])
    expect(await failureOf(openIn(outbox, 'next', event({}, 'next')))).toMatchObject({ code: 'event_outbox_full' })
    for (let tries = 0; tries < 200 && outbox.hasUnwrittenOutcomes; tries++) await Bun.sleep(10)
    await openIn(outbox, 'next', event({}, 'next'))
  })

  test('reserves room for as many attempts and decisions as an exchange may have', async () => {
    const outbox = start(emptyDirectory(), { segmentBytes: 64 * 1024, limitBytes: 256 * 1024 })
    let opened = 0
    while ((await failureOf(openIn(outbox, `${opened}`, event({}, `${opened}`), 7))) === null) opened++
    expect(opened).toBeGreaterThan(0)
    for (let index = 0; index < opened; index++) {
      await closeIn(outbox, `${index}`, { ...event({ text: 'x'.repeat(3500) }, `${index}`), attempts: inner(7) })
    }
    expect(contents(outbox).every(({ event: { details } }) => details?.trimmed === undefined)).toBe(true)
    expect(outbox.bytes).toBeLessThanOrEqual(256 * 1024)
  })

  test('closes a segment that was synced before the next one began', async () => {
    const directory = emptyDirectory()
    const outbox = start(directory, { segmentBytes: 32 * 1024 })
    for (let count = 0; count < 10; count++) {
      await outbox.refuse(event({ text: 'x'.repeat(3500) }))
      await Bun.sleep(125)
    }
    expect(listSegments(directory)).toHaveLength(2)
    outbox.shipped(outbox.lastEvent)
    expect(listSegments(directory)).toHaveLength(1)
  })

  test('keeps acknowledged segments for the configured time and ships again from any kept event', async () => {
    const outbox = start(emptyDirectory(), { keepMs: 3_600_000 })
    for (let count = 0; count < 100; count++) await outbox.refuse(event({ text: 'x'.repeat(3500), count }))
    const bytes = outbox.bytes
    outbox.shipped(100)
    expect(outbox.bytes).toBe(bytes)
    const reader = outbox.reader()
    expect(reader.read(41, 3).map(({ n }) => n)).toEqual([42, 43, 44])
    expect(reader.read(2, 3).map(({ n }) => n)).toEqual([3, 4, 5])
    reader.close()
  })
})

describe('after any crash', () => {
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.constant<'open'>('open') },
    { weight: 3, arbitrary: fc.constant<'close'>('close') },
    { weight: 2, arbitrary: fc.constant<'refuse'>('refuse') },
    { weight: 1, arbitrary: fc.constant<'kill'>('kill') },
  )
  const steps = fc.array(fc.record({ step, size: fc.integer({ min: 0, max: 3400 }) }), { minLength: 1, maxLength: 60 })

  /** Runs steps, each committed, over several lives of the process; gives what must stand in the file. */
  async function run(directory: string, plan: readonly { step: string; size: number }[]) {
    let outbox = start(directory)
    let open: string[] = []
    const opened: string[] = []
    const committed: string[] = []
    for (const { step, size } of plan) {
      const each = event({ text: 'x'.repeat(size) })
      if (step === 'open') {
        await openIn(outbox, each.event_id, each)
        open.push(each.event_id)
        opened.push(each.event_id)
      } else if (step === 'kill') {
        outbox = start(directory)
        committed.push(...open)
        open = []
      } else {
        const id = step === 'close' ? open.shift() : undefined
        if (id === undefined) await outbox.refuse(each)
        else await closeIn(outbox, id, each)
        committed.push(each.event_id)
      }
    }
    return { committed, open, opened }
  }

  const damage = (directory: string, where: number, change: (path: string, at: number, size: number) => void) => {
    const indexes = listSegments(directory)
    const sizes = indexes.map((index) => readFileSync(segmentPath(directory, index)).findLastIndex((byte) => byte > 0))
    let at = Math.floor(where * sizes.reduce((sum, size) => sum + size, 0))
    for (const [position, index] of indexes.entries()) {
      const size = sizes[position] ?? 0
      if (at < size) return change(segmentPath(directory, index), at, size)
      at -= size
    }
  }

  test('every committed record is there once, with one outcome for each opened exchange', async () => {
    await fc.assert(
      fc.asyncProperty(steps, fc.uint8Array({ maxLength: 64 }), async (plan, torn) => {
        const directory = emptyDirectory()
        const { committed, open, opened } = await run(directory, plan)
        const index = listSegments(directory).at(-1) ?? 1
        const bytes = readFileSync(segmentPath(directory, index))
        bytes.set(torn, bytes.findLastIndex((byte) => byte > 0) + 1)
        writeFileSync(segmentPath(directory, index), bytes)
        const found = contents(start(directory))
        expect(ids(found)).toEqual([...committed, ...open])
        expect(found.map(({ n }) => n)).toEqual(found.map((_, position) => position + 1))
        const closed = found.flatMap(({ closes }) => closes ?? [])
        expect(closed.sort()).toEqual(opened.sort())
        expect(contents(start(directory))).toEqual(found)
      }),
      { numRuns: 25 },
    )
  })

  test('makes up nothing after the first bad byte, and keeps all before it', async () => {
    const place = fc.double({ min: 0, max: 0.999, noNaN: true })
    await fc.assert(
      fc.asyncProperty(steps, place, fc.boolean(), async (plan, where, truncate) => {
        const directory = emptyDirectory()
        const { committed, opened } = await run(directory, plan)
        damage(directory, where, (path, at) => {
          if (truncate) return truncateSync(path, at)
          const bytes = readFileSync(path)
          bytes[at] = (bytes[at] ?? 0) ^ 0xff
          writeFileSync(path, bytes)
        })
        const found = contents(start(directory))
        const rest = found.filter((each) => !committed.includes(each.event.event_id))
        expect(found.map(({ n }) => n)).toEqual(found.map((_, position) => position + 1))
        const survived = found.length - rest.length
        expect(ids(found).slice(0, survived)).toEqual(committed.slice(0, survived))
        for (const { closes } of rest) expect(opened).toContain(closes ?? '')
        const closed = found.flatMap(({ closes }) => closes ?? [])
        expect(new Set(closed).size).toBe(closed.length)
        expect(contents(start(directory))).toEqual(found)
      }),
      { numRuns: 40 },
    )
  })
})

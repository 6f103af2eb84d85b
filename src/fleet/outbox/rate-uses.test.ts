/** What an outbox keeps of the slots that requests used, over kills, crashes of the host and many segments. */
import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Event, noAttribution } from '../../events/event.ts'
import { systemClock, timestamp } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log/log.ts'
import type { RecordedUse } from '../../usage/rate/rate.ts'
import { closeIn, openIn } from '../testing/outbox-exchanges.ts'
import { Outbox } from './outbox.ts'
import { listSegments, systemWrite } from './segment.ts'

const directories: string[] = []
const started: Outbox[] = []

afterEach(async () => {
  for (const outbox of started.splice(0)) await outbox.end().catch(() => undefined)
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true })
})

function emptyDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-uses-'))
  directories.push(directory)
  return directory
}

function start(directory: string, { now = 0, bootId = 'boot' } = {}): Outbox {
  const outbox = new Outbox({
    ...{ directory, segmentBytes: 64 * 1024, limitBytes: 8 * 1024 * 1024, keepMs: 0, bootId },
    ...{ write: systemWrite, freeBytes: () => Number.POSITIVE_INFINITY },
    ...{ clock: systemClock, hostTime: () => now, log: silentLog },
  })
  started.push(outbox)
  return outbox
}

const event = (): Event => ({
  ...{ event_id: newId(), event_type: 'gateway.request.outcome', request_id: 'request', verdict: 'allow' },
  ...{ timestamp: timestamp(Date.now()), reason_code: 'ok', config_version: 1, event_attribution: noAttribution },
})

async function request(outbox: Outbox, uses: RecordedUse[], changes: RecordedUse[] = []): Promise<void> {
  const id = newId()
  await openIn(outbox, id, event(), 2, uses)
  await closeIn(outbox, id, event(), changes)
}

test('after a kill the slots that requests took count, less what their ends gave back', async () => {
  const directory = emptyDirectory()
  const outbox = start(directory)
  await request(outbox, [['a/requests', 1000, 1]])
  await request(
    outbox,
    [
      ['a/requests', 2000, 1],
      ['a/tokens', 2000, 500],
    ],
    [['a/tokens', 2000, -480]],
  )
  await openIn(outbox, newId(), event(), 2, [['a/tokens', 2000, 7]])
  const after = start(directory, { now: 1500 })
  expect([...after.past.uses]).toEqual([
    ['a/requests', [[2000, 1]]],
    ['a/tokens', [[2000, 27]]],
  ])
  expect(after.past.run).toBeGreaterThan(outbox.past.run)
  expect(after.past.knownFrom).toBe(outbox.past.knownFrom)
})

test('after a host crash nothing is known of earlier runs', async () => {
  const directory = emptyDirectory()
  await request(start(directory), [['a/requests', 1000, 1]])
  const after = start(directory, { bootId: 'another' })
  expect([after.past.knownFrom, after.past.uses.size]).toEqual([after.past.run, 0])
  const later = start(directory, { bootId: 'another' })
  expect(later.past.knownFrom).toBe(after.past.run)
})

test('finds warm uses behind many segments, and cold uses keep no segment', async () => {
  const directory = emptyDirectory()
  let now = 0
  const outbox = new Outbox({
    ...{ directory, segmentBytes: 64 * 1024, limitBytes: 8 * 1024 * 1024, keepMs: 0, bootId: 'boot' },
    ...{ write: systemWrite, freeBytes: () => Number.POSITIVE_INFINITY },
    ...{ clock: systemClock, hostTime: () => now, log: silentLog },
  })
  started.push(outbox)
  await request(outbox, [['a/requests', 1000, 1]])
  const fill = async () => {
    while (listSegments(directory).length < 4) await request(outbox, [])
    outbox.shipped(outbox.lastEvent)
    await outbox.durable()
  }
  await fill()
  outbox.shipped(outbox.lastEvent)
  expect(start(directory, { now: 500 }).past.uses.get('a/requests')).toEqual([[1000, 1]])
  expect(listSegments(directory)[0]).toBe(1)
  now = 1001
  await Bun.sleep(1001)
  outbox.shipped(outbox.lastEvent)
  expect(listSegments(directory)[0]).toBeGreaterThan(1)
})

test('as many limits as a token may have fit into a record, whatever their names', async () => {
  const directory = emptyDirectory()
  const uses = Array.from({ length: 90 }, (_, index): RecordedUse => [`${'x'.repeat(100)}/${index}/tokens`, 1000, 5])
  await request(start(directory), uses)
  expect(start(directory).past.uses.size).toBe(90)
})

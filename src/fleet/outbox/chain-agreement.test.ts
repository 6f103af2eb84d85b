import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chainNext, chainStart } from '../../events/log/chain.ts'
import { testEvent } from '../../events/testing/ledger.ts'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log/log.ts'
import type { ChainHead } from '../protocol/wire.ts'
import { forkedAfter } from './chain-agreement.ts'
import { Outbox } from './outbox.ts'
import { eventBody } from './record.ts'
import { systemWrite } from './segment.ts'

const directories: string[] = []
const outboxes: Outbox[] = []
afterEach(async () => {
  for (const outbox of outboxes.splice(0)) await outbox.end()
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true })
})

const start: ChainHead = { seq: 0, digest: chainStart('chain') }

/** An outbox of ten events, and the heads of its chain by number. */
async function chainOfTen(): Promise<{ outbox: Outbox; heads: ChainHead[] }> {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-agreement-'))
  directories.push(directory)
  const space = { segmentBytes: 256 * 1024, limitBytes: 8 * 1024 * 1024, keepMs: 60_000 }
  const freeBytes = () => Number.POSITIVE_INFINITY
  const tools = { write: systemWrite, freeBytes, clock: systemClock, hostTime: Date.now, log: silentLog }
  const outbox = new Outbox({ directory, ...space, bootId: 'boot', ...tools })
  outboxes.push(outbox)
  await outbox.add(Array.from({ length: 10 }, () => testEvent()))
  const heads = [start]
  const reader = outbox.reader()
  for (const { n, record } of reader.read(0, 100)) {
    heads.push({ seq: n, digest: chainNext(heads[n - 1]?.digest ?? '', n, eventBody(record)) })
  }
  reader.close()
  return { outbox, heads }
}

const own = (outbox: Outbox, agreed: ChainHead | null, trusted = 10) => ({
  ...{ agreed, last: outbox.lastEvent, trusted },
  reader: () => outbox.reader(),
})
const other = (seq: number): ChainHead => ({ seq, digest: 'ff'.repeat(32) })

test('the same head is no fork, wherever the worker last agreed', async () => {
  const { outbox, heads } = await chainOfTen()
  for (const agreed of [null, start, heads[4] ?? null, heads[10] ?? null]) {
    for (const head of heads) expect(forkedAfter(own(outbox, agreed), { ...head, earlier: [] })).toBeNull()
  }
})

test('another digest under a known number is a fork after the last common event', async () => {
  const { outbox, heads } = await chainOfTen()
  const earlier = [heads[4], other(6), other(7)].filter((point) => point !== undefined)
  expect(forkedAfter(own(outbox, start), { ...other(8), earlier })).toBe(4)
  expect(forkedAfter(own(outbox, heads[2] ?? null), { ...other(8), earlier: [] })).toBe(2)
})

test('more events in the ledger than the worker can have written are a fork', async () => {
  const { outbox, heads } = await chainOfTen()
  const earlier = heads.slice(8)
  expect(forkedAfter(own(outbox, start), { ...other(12), earlier })).toBe(10)
  expect(forkedAfter(own(outbox, null, 7), { ...other(9), earlier: [] })).toBe(7)
})

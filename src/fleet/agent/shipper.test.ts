import { afterEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { until } from '../../../test/support/eventually.ts'
import { chainNext, chainStart } from '../../events/log/chain.ts'
import { testEvent } from '../../events/testing/ledger.ts'
import { Failure } from '../../failure.ts'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log/log.ts'
import { readBatch } from '../coordinator/routes/events-batch.ts'
import { Outbox } from '../outbox/outbox.ts'
import { eventBody } from '../outbox/record.ts'
import { systemWrite } from '../outbox/segment.ts'
import type { ChainHead } from '../protocol/wire.ts'
import { Shipper } from './shipper.ts'
import { ShipperBatches } from './shipper-batches.ts'

const directories: string[] = []
const outboxes: Outbox[] = []
afterEach(async () => {
  for (const outbox of outboxes.splice(0)) await outbox.end()
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true })
})

function newOutbox(): Outbox {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-shipper-'))
  directories.push(directory)
  const space = { segmentBytes: 128 * 1024, limitBytes: 8 * 1024 * 1024, keepMs: 60_000 }
  const freeBytes = () => Number.POSITIVE_INFINITY
  const tools = { write: systemWrite, freeBytes, clock: systemClock, hostTime: Date.now, log: silentLog }
  const outbox = new Outbox({ directory, ...space, bootId: 'boot', ...tools })
  outboxes.push(outbox)
  return outbox
}

const event = (size: number) => testEvent({ details: { text: 'é'.repeat(size) } })

const start: ChainHead = { seq: 0, digest: chainStart('chain') }
const often = { everyMs: 1 }
const small = { events: 5, bytes: 16 * 1024, most: 2 }

/** A ledger that takes what continues its chain, to the byte, and can be set back to an earlier head. */
class FakeLedger {
  heads = [start]
  bodies: string[] = []
  batches = 0

  get head(): ChainHead {
    return this.heads.at(-1) ?? start
  }

  async take(batch: Buffer<ArrayBuffer>): Promise<ChainHead> {
    const { first, lines, digest } = await readBatch(batch, 'zstd')
    const texts = lines.map(({ text }) => text)
    if (texts.length === 0) return this.head
    this.batches += 1
    if (first > this.head.seq + 1) throw new Failure('chain_gap')
    const heads = this.heads.slice(0, first)
    for (const text of texts) {
      const n = heads.length
      heads.push({ seq: n, digest: chainNext(heads[n - 1]?.digest ?? '', n, text) })
      if ((this.heads[n] ?? heads[n])?.digest !== heads[n]?.digest) throw new Failure('chain_fork')
    }
    if (heads.at(-1)?.digest !== digest) throw new Failure('chain_fork')
    this.bodies.push(...texts.slice(this.heads.length - first))
    this.heads.push(...heads.slice(this.heads.length))
    return this.head
  }

  setBack(to: number): void {
    this.heads.length = Math.min(this.heads.length, to + 1)
    this.bodies.length = this.heads.length - 1
  }
}

/** The bodies of everything that stands in the outbox. */
function bodiesOf(outbox: Outbox): string[] {
  const reader = outbox.reader()
  const bodies: string[] = []
  for (;;) {
    const events = reader.read(bodies.length, 100)
    if (events.length === 0) break
    for (const { record } of events) bodies.push(eventBody(record).toString())
  }
  reader.close()
  return bodies
}

function startShipper(outbox: Outbox, post: (lines: Buffer<ArrayBuffer>) => Promise<ChainHead>, batches = small) {
  const broken: Failure[] = []
  const shipper = new Shipper({
    ...{ outbox, post, lingerMs: 0, paceMs: 5, random: () => 0, clock: systemClock },
    batches: new ShipperBatches(batches),
    onBroken: (failure) => void broken.push(failure),
    onAgreed: () => undefined,
    onFailure: () => undefined,
  })
  return { shipper, broken }
}

/** Gives how often a reader that is opened from now on has read events. */
function countReads(outbox: Outbox): () => number {
  let reads = 0
  const open = outbox.reader.bind(outbox)
  outbox.reader = () => {
    const reader = open()
    const read = reader.read.bind(reader)
    reader.read = (after, limit) => {
      const events = read(after, limit)
      reads += events.length > 0 ? 1 : 0
      return events
    }
    return reader
  }
  return () => reads
}

describe('a shipper', () => {
  test('reads the outbox only for older events while the control plane keeps up', async () => {
    const outbox = newOutbox()
    const reads = countReads(outbox)
    const ledger = new FakeLedger()
    const { shipper, broken } = startShipper(outbox, async (lines) => ledger.take(lines))
    await outbox.add(Array.from({ length: 12 }, () => event(10)))
    shipper.resume(ledger.head)
    await until('the backlog is shipped', () => shipper.done, often)
    const before = reads()
    expect(before).toBeGreaterThan(0)
    for (let count = 0; count < 4; count++) {
      await outbox.add([event(10), event(1500)])
      await until('all is shipped', () => shipper.done, often)
    }
    shipper.stop()
    expect(reads()).toBe(before)
    expect(broken).toEqual([])
    expect(ledger.bodies).toEqual(bodiesOf(outbox))
  })

  test('lets a batch fill under load and sends a full batch at once', async () => {
    const outbox = newOutbox()
    const ledger = new FakeLedger()
    const { shipper } = startShipper(outbox, async (lines) => ledger.take(lines), { ...small, events: 50, bytes: 1e6 })
    shipper.resume(ledger.head)
    for (let count = 0; count < 100; count++) await outbox.refuse(event(1))
    await until('all is shipped', () => shipper.done, often)
    shipper.stop()
    expect(ledger.batches).toBeLessThan(10)
  })

  test('does not retry earlier because of new events while the control plane accepts none', async () => {
    const outbox = newOutbox()
    let tries = 0
    const { shipper } = startShipper(outbox, async () => {
      tries++
      throw new Failure('dependency_unavailable')
    })
    shipper.resume(start)
    for (let count = 0; count < 30; count++) {
      await outbox.refuse(event(1))
      await Bun.sleep(1)
    }
    shipper.stop()
    expect(tries).toBeLessThan(10)
  })

  test('continues after a failed post when a handshake shows that its events arrived', async () => {
    const outbox = newOutbox()
    const ledger = new FakeLedger()
    const { promise: lost, reject: lose } = Promise.withResolvers<ChainHead>()
    let posts = 0
    const { shipper } = startShipper(outbox, async (lines) => {
      const head = await ledger.take(lines)
      return ++posts === 1 ? await lost : head
    })
    shipper.resume(ledger.head)
    await outbox.refuse(event(1))
    await until('the first batch is under way', () => posts === 1, often)
    shipper.resume(ledger.head)
    lose(new Failure('dependency_unavailable'))
    await Bun.sleep(1)
    await outbox.refuse(event(1))
    await until('all is shipped', () => ledger.head.seq === 2 && shipper.done, { ...often, withinMs: 2000 })
    shipper.stop()
  })

  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ step: fc.constant('write'), size: fc.integer({ min: 0, max: 1500 }) }) },
    { weight: 3, arbitrary: fc.record({ step: fc.constant('turn'), size: fc.integer({ min: 0, max: 3 }) }) },
    { weight: 2, arbitrary: fc.record({ step: fc.constant('answer'), size: fc.integer({ min: 0, max: 5 }) }) },
    { weight: 1, arbitrary: fc.record({ step: fc.constant('handshake'), size: fc.constant(0) }) },
    { weight: 1, arbitrary: fc.record({ step: fc.constant('set back'), size: fc.integer({ min: 0, max: 12 }) }) },
  )

  test('brings every event to the ledger exactly once and byte for byte, under loss, delay and reset', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 50 }), async (plan) => {
        const outbox = newOutbox()
        const ledger = new FakeLedger()
        /** Posts that are under way: each is taken or lost, and its reply comes or not, when the plan says so. */
        const underWay: ((fate: number) => void)[] = []
        let calm = false
        const post = (lines: Buffer<ArrayBuffer>) =>
          new Promise<ChainHead>((resolve, reject) => {
            const settled = async (fate: number) => {
              if (fate === 0) throw new Failure('dependency_unavailable')
              const head = await ledger.take(lines)
              if (fate === 1) throw new Failure('dependency_unavailable')
              return head
            }
            const end = (fate: number) => void settled(fate).then(resolve, reject)
            if (calm) end(2)
            else underWay.push(end)
          })
        const { shipper, broken } = startShipper(outbox, post)
        shipper.resume(ledger.head)
        for (const { step, size } of plan) {
          if (step === 'write') await outbox.add(size % 3 === 0 ? [event(size), event(1)] : [event(size)])
          else if (step === 'turn') await Bun.sleep(size)
          else if (step === 'answer') underWay.shift()?.(size)
          else if (step === 'handshake') shipper.resume(ledger.head)
          else {
            ledger.setBack(size)
            shipper.resume(ledger.head)
          }
        }
        calm = true
        for (const end of underWay.splice(0)) end(0)
        await until('all is shipped', () => ledger.head.seq === outbox.lastEvent && shipper.done, often)
        shipper.stop()
        expect(broken).toEqual([])
        expect(ledger.bodies).toEqual(bodiesOf(outbox))
      }),
      { numRuns: 40 },
    )
  })
})

/** Fills a log as gateways would, and what that costs the processor and the disk. */

import { ingestEvents } from '../../../src/events/ingest/ingest.ts'
import type { Line } from '../../../src/events/ingest/read-batch.ts'
import type { ChainHead } from '../../../src/events/log/append.ts'
import { ChainWalk, chainStart } from '../../../src/events/log/chain.ts'
import { hashOfId } from '../../../src/events/log/id-hashes.ts'
import { mergeSegments } from '../../../src/events/log/merge-segments.ts'
import { buildSegment, type NewRecord } from '../../../src/events/log/segment.ts'
import { encodeSegment } from '../../../src/events/log/segment-codec.ts'
import { readRecord } from '../../../src/events/read-event.ts'
import { foldRollups } from '../../../src/events/rollups/fold.ts'
import { pendingRollups } from '../../../src/events/rollups/pending-rollups.ts'
import { lineOf } from '../../../src/events/testing/worker-chain.ts'
import { newId } from '../../../src/lib/ids.ts'
import { silentLog } from '../../../src/lib/log/log.ts'
import { yieldToEventLoop } from '../../../src/lib/yield-to-event-loop.ts'
import type { Database } from '../../../src/store/open.ts'
import { settlementStatements } from '../../../src/usage/settlement-statements.ts'
import { exchangeOf, type Worker, workers } from './scale-records.ts'

export interface BatchSizes {
  least: number
  most: number
}

export interface FillCost {
  requests: number
  /** Microseconds of the processor for each request. */
  ingest: number
  merge: number
  fold: number
}

const heads = new Map<Database, Map<string, ChainHead>>()

/** Microseconds of the processor, of all threads, that work takes. */
export async function processorTime(work: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return user + system
}

/**
 * The records of a batch: those of one worker, of the time before it is received. One batch in 50 comes an hour late.
 */
export function batchOf(
  worker: Worker,
  first: number,
  size: number,
  { until, span }: { until: number; span: number },
): string[] {
  const late = Math.random() < 0.02 ? 3_600_000 : 0
  return Array.from({ length: size }, (_, index) => {
    const at = Math.floor(until - late - span * (1 - index / size))
    return JSON.stringify(exchangeOf(first + index, worker.gateway, at))
  })
}

/** Appends so many exchanges, spread evenly over the time from `since` to `until`. */
export async function fill(
  ledger: Database,
  count: number,
  { since, until, sizes, sums }: { since: number; until: number; sizes: BatchSizes; sums: boolean },
): Promise<FillCost> {
  const cost = { ingest: 0, merge: 0, fold: 0 }
  const known = heads.get(ledger) ?? new Map<string, ChainHead>()
  heads.set(ledger, known)
  const between = (until - since) / count
  for (let made = 0, batches = 0; made < count; batches += 1) {
    const size = Math.min(count - made, sizes.least + Math.floor(Math.random() * (sizes.most - sizes.least + 1)))
    const worker = workers[Math.floor(Math.random() * workers.length)]
    if (worker === undefined) break
    const { chain } = worker
    const receivedAt = Math.floor(since + (made + size) * between)
    const texts = batchOf(worker, made, size, { until: receivedAt, span: between * size * workers.length })
    const head = known.get(chain) ?? { seq: 0, digest: chainStart(chain) }
    const walk = new ChainWalk(head.digest)
    const lines = texts.map(lineOf)
    for (const [index, { bytes }] of lines.entries()) walk.step(head.seq + 1 + index, bytes)
    cost.ingest += await processorTime(async () => {
      known.set(chain, await ingest(ledger, worker, { first: head.seq + 1, lines, digest: walk.digest, receivedAt }))
    })
    made += size
    if (batches % 64 === 63) {
      cost.merge += await processorTime(() => mergeSegments(ledger))
      cost.fold += await processorTime(() => (sums ? foldRollups(ledger) : leaveSums(ledger)))
    }
    await yieldToEventLoop()
  }
  cost.merge += await processorTime(() => mergeSegments(ledger))
  cost.fold += await processorTime(() => (sums ? foldRollups(ledger) : leaveSums(ledger)))
  return { requests: count, ingest: cost.ingest / count, merge: cost.merge / count, fold: cost.fold / count }
}

const leaveSums = (ledger: Database): Promise<void> =>
  ledger.write([{ sql: 'delete from pending_event_rollups', args: [] }])

const ingest = (
  ledger: Database,
  { chain, gateway }: Worker,
  batch: { first: number; lines: readonly Line[]; digest: string; receivedAt: number },
): Promise<ChainHead> =>
  ingestEvents(ledger, {
    ...{ chain, gatewayId: gateway, ...batch, newId, log: silentLog },
    bookingStatements: (records) =>
      settlementStatements({
        worker: chain,
        settlements: records.flatMap(({ settlements = [] }) => settlements),
        epoch: '[]',
      }),
    onIngested: () => undefined,
  })

/** What each part of ingest costs, in microseconds of the processor for each request, over many batches of one size. */
export async function partsOfIngest(size: number): Promise<Record<string, number>> {
  const now = Date.now()
  const [worker] = workers
  if (worker === undefined) return {}
  const batches = Array.from({ length: Math.ceil(40_000 / size) }, (_, index) =>
    batchOf(worker, index * size, size, { until: now, span: 1000 }),
  )
  const place = { chain: worker.chain, first: 1, digestBefore: chainStart(worker.chain), digest: '', receivedAt: now }
  const costs: Record<string, number> = {}
  const each = async <Input, Output>(
    name: string,
    inputs: readonly Input[],
    work: (input: Input) => Output,
  ): Promise<Output[]> => {
    let outputs: Output[] = []
    const time = await processorTime(() => {
      outputs = inputs.map(work)
    })
    costs[name] = time / (batches.length * size)
    return outputs
  }
  const parsed = await each('parse JSON', batches, (texts) => texts.map((text) => JSON.parse(text)))
  const read = await each('check', parsed, (values) => values.map(readRecord))
  await each('chain', batches, (texts) => {
    const walk = new ChainWalk(place.digestBefore)
    for (const [index, text] of texts.entries()) walk.step(index + 1, text)
  })
  const records = read.map((some, batch) =>
    some.map((record, index): NewRecord => ({ bytes: Buffer.from(batches[batch]?.[index] ?? ''), at: now, record })),
  )
  await each('hash one id', records, (some) => some.map(({ record }) => hashOfId(record?.event_id ?? '')))
  const segments = await each('index and join', records, (some) => buildSegment(some, place))
  await each('compress', segments, encodeSegment)
  await each('tally', read, (some) =>
    pendingRollups(
      some.filter((record) => record !== null),
      now,
    ),
  )
  return costs
}

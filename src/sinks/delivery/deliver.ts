/**
 * Delivers the record to the sinks, in the background: each second every enabled sink that has something to get, that
 * nobody else delivers to and whose pause is over. A sink's parcels go one after another, so records of a chain arrive
 * in their order. The steps of a parcel: its end is written down, it is sent, the cursor moves behind it. A process may
 * die between any two: the parcel is then sent again as it was.
 */

import { logOf } from '../../events/engine/log-of.ts'
import { readLogHead } from '../../events/log/segment-rows.ts'
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import { compileFilter } from '../formats/filter.ts'
import { Proofs } from '../formats/proof.ts'
import { sinkKindOf } from '../kinds/index.ts'
import { type Receiver, ReceiverFailed, type ReceiverTools, type Sink } from '../sink.ts'
import { openSink } from '../stored-sink.ts'
import {
  claim,
  type Delivery,
  isTaken,
  type Owner,
  readDeliveries,
  release,
  type SinkAndDelivery,
  type Step,
  writeStep,
} from './cursor.ts'
import { type Drawn, drawParcel } from './draw-parcel.ts'
import { type Refusal, sendParcel } from './send-parcel.ts'
import { type SinkDependencies, sinkEvent, testItem } from './sink-events.ts'

export interface SinkRunnerOptions extends SinkDependencies {
  fetch: ReceiverTools['fetch']
  /** Names this control plane; the same after a restart. */
  host: string
  /** Milliseconds since the epoch by the ledger: leases and pauses hold for control planes whose clocks differ. */
  ledgerTime(): Promise<number>
  random(): number
}

export interface SinkRunner {
  /** Begins what can be delivered now. */
  round(): Promise<void>
  /** Resolves when nothing is being delivered; for tests, and at the end. */
  settled(): Promise<void>
  /** Ends what is being delivered; what was not acknowledged is sent again. */
  stop(): Promise<void>
}

const failuresUntilTold = 3
/** Sinks that are delivered to at once; a parcel may take 100 MB while it is made. */
const sinksAtOnce = 4
/** For how long one of them is, before others have their turn. */
const turnMilliseconds = 30_000
const longestError = 500
/** So many refused messages of one parcel are named by an event each; the log names all. */
const refusalsNamed = 20

/** Milliseconds until the next try: doubling from 1 s to 5 minutes, with jitter above half. */
export function retryMilliseconds(failures: number, random: () => number): number {
  const most = Math.min(300_000, 1000 * 2 ** Math.min(failures - 1, 10))
  return most / 2 + (most / 2) * random()
}

type Named = Pick<Sink, 'id' | 'name'>

/** A receiver that is kept open from one parcel to the next. */
interface Opened {
  sink: Sink
  receiver: Receiver
  proofs: Proofs | null
}

export function createSinkRunner(options: SinkRunnerOptions): SinkRunner {
  const { ledger, clock, log } = options
  const owner: Owner = { host: options.host, process: options.newId() }
  const stopping = new AbortController()
  const running = new Map<string, Promise<void>>()
  const opened = new Map<string, Opened>()
  /** When each sink had its last turn. */
  const turns = new Map<string, number>()
  /** Since when a sink has waited for a full parcel, and at which position. */
  const waiting = new Map<string, { position: number; since: number }>()

  const round = async () => {
    const all = await readDeliveries(ledger)
    for (const [id, { receiver }] of opened) {
      if (running.has(id) || all.some(({ sink }) => sink.id === id && sink.enabled === 1)) continue
      opened.delete(id)
      await receiver.close()
    }
    if (all.length === 0) return
    const { next } = await readLogHead(ledger)
    const now = await options.ledgerTime()
    // Those that have waited longest come first.
    const inTurn = all.toSorted((one, other) => (turns.get(one.sink.id) ?? 0) - (turns.get(other.sink.id) ?? 0))
    for (const each of inTurn) {
      if (running.size >= sinksAtOnce) return
      const { sink } = each
      if (stopping.signal.aborted || running.has(sink.id) || !isDue(each, next, now)) continue
      const work = deliver(sink).finally(() => running.delete(sink.id))
      running.set(sink.id, work)
      waiting.delete(sink.id)
      turns.set(sink.id, clock.monotonic())
    }
  }

  /** Whether a sink has a full parcel, or something that has waited long enough. */
  const isDue = ({ sink, delivery }: SinkAndDelivery, next: number, now: number): boolean => {
    if (sink.enabled === 0 || delivery.retryAt > now || isTaken(delivery, owner, now)) return false
    const { position } = delivery
    if (next <= position) return false
    const kind = sinkKindOf(sink.kind)
    if (delivery.plannedEnd !== null || next - position >= kind.most.items) return true
    const known = waiting.get(sink.id)
    const since = known?.position === position ? known.since : clock.monotonic()
    waiting.set(sink.id, { position, since })
    return clock.monotonic() - since >= kind.restMilliseconds(JSON.parse(sink.config))
  }

  const deliver = async (sink: Named) => {
    try {
      const claimed = await claim(ledger, sink.id, owner, await options.ledgerTime())
      if (claimed === null) return
      try {
        await deliverAll(claimed)
      } catch (error) {
        // It did not come as far as the receiver: its credentials cannot be opened, or the log cannot be read.
        const now = await readDeliveries(ledger, sink.id)
        if (now[0] !== undefined) await noteFailure(sink, now[0].delivery, error)
      } finally {
        await release(ledger, sink.id, owner)
      }
    } catch (error) {
      log.error({ sink: sink.name, error: String(error) }, 'A sink could not be delivered to')
    }
  }

  /** The sink with a receiver that is open; null where it is gone or off. */
  const openOf = async (sinkId: string): Promise<Opened | null> => {
    const [row] = await readDeliveries(ledger, sinkId)
    if (row === undefined || row.sink.enabled === 0) return null
    const known = opened.get(sinkId)
    if (known?.sink.version === row.sink.version) return known
    await known?.receiver.close()
    const sink = await openSink(options, row.sink)
    const kind = sinkKindOf(sink.kind)
    const proves = kind.proves !== false && sink.format === 'records'
    const made = {
      sink,
      receiver: kind.open(sink, { fetch: options.fetch, now: clock.now }),
      proofs: proves ? new Proofs(options, kind.proves === 'object') : null,
    }
    opened.set(sinkId, made)
    return made
  }

  /** Parcel after parcel, until the sink has everything or cannot go on. */
  const deliverAll = async (claimed: Delivery) => {
    let delivery = claimed
    const ends = clock.monotonic() + turnMilliseconds
    for (let parcels = 0; !stopping.signal.aborted; parcels += 1) {
      const open = await openOf(delivery.sinkId)
      if (open === null) return
      const { next: before } = await readLogHead(ledger)
      if (before <= delivery.position) return
      const drawn = await draw(open, delivery, before)
      const goesOnAt = drawn.goesOnAt ?? (drawn.parcel.next === delivery.position ? await logOf(ledger).oldest() : null)
      if (goesOnAt !== null && goesOnAt > delivery.position) {
        if (!(await noteLost(open.sink, delivery, goesOnAt))) return
        delivery = { ...delivery, position: goesOnAt, plannedEnd: null }
        continue
      }
      if (drawn.parcel.next === delivery.position) return
      // What is left over waits until it is enough for a parcel of its own.
      if (parcels > 0 && !drawn.full && delivery.plannedEnd === null) return
      const { next } = drawn.parcel
      const planned = { ...delivery, plannedEnd: next }
      if (delivery.plannedEnd !== next && !(await step(planned, { plannedEnd: next }))) return
      const refused = await send(open, drawn).catch((error: unknown) => error)
      if (!Array.isArray(refused)) return await noteFailure(open.sink, planned, refused)
      if (!(await noteDelivered(open, planned, drawn, refused))) return
      delivery = { ...planned, position: next, plannedEnd: null, failures: 0, told: 0 }
      if (clock.monotonic() >= ends) return
      await yieldToEventLoop()
    }
  }

  const step = async (delivery: Delivery, change: Step) =>
    await writeStep(ledger, delivery, owner, await options.ledgerTime(), change)

  const draw = ({ sink, proofs }: Opened, { position: from, plannedEnd }: Delivery, before: number): Promise<Drawn> => {
    const { format } = sink
    const filter = sink.filter === null ? null : compileFilter(sink.filter)
    return drawParcel(
      ledger,
      { format, filter, most: sinkKindOf(sink.kind).most, proofs },
      { from, plannedEnd, before },
    )
  }

  const send = async ({ sink, receiver }: Opened, { parcel, proof }: Drawn): Promise<Refusal[]> => {
    // A parcel that the filter has emptied proves itself or need not be sent.
    if (parcel.items.length === 0 && parcel.proof === null) return []
    return await sendParcel(receiver, parcel, {
      probe: testItem(await sinkEvent(options, { type: 'sink.tested', sink }), sink.format),
      signal: stopping.signal,
      ...(proof === null ? {} : { proofWithout: (positions) => proof.text(parcel.next, positions) }),
    })
  }

  const noteDelivered = async (
    { sink, proofs }: Opened,
    delivery: Delivery,
    { parcel }: Drawn,
    refused: readonly Refusal[],
  ): Promise<boolean> => {
    const delivered = parcel.items.length - refused.length
    const moved = await step(delivery, {
      ...{ position: parcel.next, plannedEnd: null, delivered, refused: refused.length, failed: null, told: false },
    })
    if (!moved) return false
    proofs?.sent()
    if (delivery.told === 1) await tell(sink, 'sink.recovered', {})
    for (const [index, { item, reason }] of refused.entries()) {
      const { id, chain, position } = item
      log.warn(
        { sink: sink.name, chain, position, event: id, reason },
        'A sink refused a message, which is passed over',
      )
      // An event about an event about a sink could go on for ever.
      if (index >= refusalsNamed || item.type.startsWith('sink.')) continue
      await tell(sink, 'sink.record_refused', { event_id: id, chain, position, error: reason }, 'sink.refused')
    }
    return true
  }

  const noteFailure = async (sink: Named, delivery: Delivery, thrown: unknown) => {
    if (stopping.signal.aborted) return
    const failures = delivery.failures + 1
    const wait = (thrown instanceof ReceiverFailed ? thrown.wait : null) ?? retryMilliseconds(failures, options.random)
    const error = (thrown instanceof Error ? thrown.message : String(thrown)).slice(0, longestError)
    const isNews = failures >= failuresUntilTold && delivery.told === 0
    const failed = { failures, retryAt: (await options.ledgerTime()) + Math.round(wait), error }
    if (!(await step(delivery, { failed, ...(isNews ? { told: true } : {}) }))) return
    log.warn({ sink: sink.name, failures, error }, 'A sink took nothing: it will be tried again')
    if (isNews) await tell(sink, 'sink.failing', { failures, error }, 'sink.failing')
  }

  /** Retention has removed what the sink had not got. */
  const noteLost = async (sink: Sink, delivery: Delivery, goesOnAt: number): Promise<boolean> => {
    const lost = goesOnAt - delivery.position
    if (!(await step(delivery, { position: goesOnAt, plannedEnd: null, lost }))) return false
    log.error({ sink: sink.name, records: lost }, 'Retention removed records that a sink had not got')
    const details = { first_position: delivery.position, records: lost }
    await tell(sink, 'sink.records_lost', details, 'sink.records_lost')
    return true
  }

  const tell = async (
    sink: Named,
    type: Parameters<typeof sinkEvent>[1]['type'],
    details: Record<string, unknown>,
    reason?: string,
  ) =>
    await options.recorder.append([
      await sinkEvent(options, { type, sink, details, ...(reason === undefined ? {} : { reason }) }),
    ])

  const settled = async () => {
    await Promise.all(running.values())
  }
  return {
    round,
    settled,
    async stop() {
      stopping.abort()
      await settled()
      for (const { receiver } of opened.values()) await receiver.close()
    },
  }
}

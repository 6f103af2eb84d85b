/** How far sinks are behind: for their records, for metrics and for alerts. */

import { logOf } from '../events/engine/log-of.ts'
import { readLogHead } from '../events/log/segment-rows.ts'
import { timestamp } from '../lib/clock.ts'
import type { Database } from '../store/open.ts'
import type { SinkReading } from '../telemetry/metrics.ts'
import { type Delivery, readDeliveries, type SinkAndDelivery } from './delivery/cursor.ts'
import type { SinkReply, sinkStates } from './sink-resource.ts'

type Progress = Pick<
  SinkReply,
  'state' | 'lag_records' | 'lag_seconds' | 'delivered' | 'refused' | 'lost' | 'error' | 'next_try_at' | 'delivered_at'
>

/** How each of these sinks stands now, in their order. */
export async function progressOf(ledger: Database, all: readonly SinkAndDelivery[], now: number): Promise<Progress[]> {
  const { next } = await readLogHead(ledger)
  return await Promise.all(
    all.map(async ({ sink, delivery }) => {
      const { position, failures, error, retryAt, delivered, refused, lost, deliveredAt } = delivery
      const lag = Math.max(0, next - position)
      // A sink is not late with what happened before it was made.
      const since = lag === 0 ? now : Math.max(sink.createdAt, (await logOf(ledger).timeAt(position)) ?? now)
      return {
        state: stateOf(sink.enabled === 1, delivery, lag),
        lag_records: lag,
        lag_seconds: Math.max(0, Math.floor((now - since) / 1000)),
        ...{ delivered, refused, lost, error },
        next_try_at: failures > 0 && retryAt > now ? timestamp(retryAt) : null,
        delivered_at: deliveredAt === null ? null : timestamp(deliveredAt),
      }
    }),
  )
}

function stateOf(isEnabled: boolean, { failures }: Delivery, lag: number): (typeof sinkStates)[number] {
  if (!isEnabled) return 'disabled'
  if (failures > 0) return 'failing'
  return lag === 0 ? 'caught_up' : 'delivering'
}

/** The lag of every sink that is not disabled, as metrics and alerts see it. */
export async function sinkLags(ledger: Database, now: number): Promise<SinkReading[]> {
  const all = (await readDeliveries(ledger)).filter(({ sink }) => sink.enabled === 1)
  const progress = all.length === 0 ? [] : await progressOf(ledger, all, now)
  return progress.map(({ state, lag_records, lag_seconds, refused, lost }, index) => ({
    name: all[index]?.sink.name ?? '',
    kind: all[index]?.sink.kind ?? '',
    failing: state === 'failing',
    lagRecords: lag_records,
    lagSeconds: lag_seconds,
    refused,
    lost,
  }))
}

/** The position of the first record that an enabled sink has not got; null where none waits for anything. */
export async function heldFrom(ledger: Database): Promise<number | null> {
  const waiting = (await readDeliveries(ledger)).filter(({ sink }) => sink.enabled === 1)
  return waiting.length === 0 ? null : Math.min(...waiting.map(({ delivery }) => delivery.position))
}

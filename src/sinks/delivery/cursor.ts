/**
 * How far a sink has got, and who delivers to it. One control plane at a time has the lease of a sink; each step holds
 * only while it has it, so a slow one that lost it changes nothing any more. A lease is longer than a parcel may take,
 * and its times are those of the ledger. One that ends later than a lease can is of a clock that was set back: it is over.
 */
import { and, eq, gt, lt, ne, or, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Database } from '../../store/open.ts'
import { query, statement, update } from '../../store/query.ts'
import { sinkDeliveries, sinks } from '../../store/schema/ledger/sinks.ts'

export const leaseMilliseconds = 90_000

export type Delivery = typeof sinkDeliveries.$inferSelect
export type SinkRow = typeof sinks.$inferSelect

export interface SinkAndDelivery {
  sink: SinkRow
  delivery: Delivery
}

/** Who delivers: the installation of a control plane, and its present process. A former process holds nothing. */
export interface Owner {
  host: string
  process: string
}

const nameOf = ({ host, process }: Owner): string => `${host}:${process}`

/** All sinks in the order they were made, or one. */
export const readDeliveries = (ledger: Database, id?: string): Promise<SinkAndDelivery[]> =>
  query(ledger)
    .select({ sink: sinks, delivery: sinkDeliveries })
    .from(sinks)
    .innerJoin(sinkDeliveries, eq(sinkDeliveries.sinkId, sinks.id))
    .where(id === undefined ? undefined : eq(sinks.id, id))
    .orderBy(sinks.id)

/** Whether another control plane delivers now. */
export const isTaken = ({ owner, leasedUntil }: Delivery, { host }: Owner, now: number): boolean =>
  owner !== null && leasedUntil > now && leasedUntil <= now + leaseMilliseconds && !owner.startsWith(`${host}:`)

/** Takes the lease. Null where another one has it. */
export async function claim(ledger: Database, sinkId: string, owner: Owner, now: number): Promise<Delivery | null> {
  const name = nameOf(owner)
  const free = or(
    sql`${sinkDeliveries.owner} is null`,
    lt(sinkDeliveries.leasedUntil, now),
    gt(sinkDeliveries.leasedUntil, now + leaseMilliseconds),
    and(
      sql`substr(${sinkDeliveries.owner}, 1, ${owner.host.length + 1}) = ${`${owner.host}:`}`,
      ne(sinkDeliveries.owner, name),
    ),
  )
  await ledger.write([
    statement(
      update(sinkDeliveries)
        .set({ owner: name, leasedUntil: now + leaseMilliseconds })
        .where(and(eq(sinkDeliveries.sinkId, sinkId), free)),
    ),
  ])
  return await ownDelivery(ledger, sinkId, owner)
}

async function ownDelivery(ledger: Database, sinkId: string, owner: Owner): Promise<Delivery | null> {
  const row = await query(ledger)
    .select()
    .from(sinkDeliveries)
    .where(and(eq(sinkDeliveries.sinkId, sinkId), eq(sinkDeliveries.owner, nameOf(owner))))
    .get()
  return row ?? null
}

/** What a step changes; the lease begins anew with it. */
export interface Step {
  position?: number
  plannedEnd?: number | null
  /** To add. */
  delivered?: number
  refused?: number
  lost?: number
  /** Of the try that failed, or null where one succeeded. */
  failed?: { failures: number; retryAt: number; error: string } | null
  told?: boolean
}

/** Writes a step. False where the lease is lost or the sink is gone: then nothing has changed. */
export async function writeStep(
  ledger: Database,
  { sinkId, position: from }: Pick<Delivery, 'sinkId' | 'position'>,
  owner: Owner,
  now: number,
  step: Step,
): Promise<boolean> {
  const { position, plannedEnd, delivered = 0, refused = 0, lost = 0, failed, told } = step
  const plus = (column: SQLiteColumn, by: number) => sql`${column} + ${by}`
  await ledger.write([
    statement(
      update(sinkDeliveries)
        .set({
          leasedUntil: now + leaseMilliseconds,
          ...(position === undefined ? {} : { position }),
          ...(plannedEnd === undefined ? {} : { plannedEnd }),
          ...(delivered === 0 ? {} : { delivered: plus(sinkDeliveries.delivered, delivered), deliveredAt: now }),
          ...(refused === 0 ? {} : { refused: plus(sinkDeliveries.refused, refused) }),
          ...(lost === 0 ? {} : { lost: plus(sinkDeliveries.lost, lost) }),
          ...(failed === undefined ? {} : (failed ?? { failures: 0, retryAt: 0, error: null })),
          ...(told === undefined ? {} : { told: told ? 1 : 0 }),
        })
        .where(
          and(
            eq(sinkDeliveries.sinkId, sinkId),
            eq(sinkDeliveries.owner, nameOf(owner)),
            eq(sinkDeliveries.position, from),
          ),
        ),
    ),
  ])
  const after = await ownDelivery(ledger, sinkId, owner)
  return after !== null && after.position === (position ?? from)
}

/** Gives the lease back, where it is still held. */
export const release = (ledger: Database, sinkId: string, owner: Owner): Promise<void> =>
  ledger.write([
    statement(
      update(sinkDeliveries)
        .set({ owner: null, leasedUntil: 0 })
        .where(and(eq(sinkDeliveries.sinkId, sinkId), eq(sinkDeliveries.owner, nameOf(owner)))),
    ),
  ])

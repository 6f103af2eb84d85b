/**
 * The queries of alerts, of what they found, and of the notices that follow.
 *
 * SQL text: history is removed a bounded part at a time, and the lease is claimed and read in one batch.
 */
import { and, between, count, desc, eq, gt, isNull, lt, or, sql } from 'drizzle-orm'
import { z } from 'zod'
import { type Database, databaseTime, type Reader } from '../store/open.ts'
import { guard, hasRow, insert, isOneOf, query, remove, statement, update } from '../store/query.ts'
import { alertDeliveries, alertFirings, alertLease, alerts } from '../store/schema/ledger/alerts.ts'
import type { Statement } from '../store/statement.ts'
import { alertConfig, type severities } from './alert-resource.ts'
import { type ConditionName, conditionNames, conditionRow } from './conditions/condition-table.ts'

export type AlertRow = typeof alerts.$inferSelect
export type FiringRow = typeof alertFirings.$inferSelect
export type DeliveryRow = typeof alertDeliveries.$inferSelect
export type Severity = (typeof severities)[number]

/** An alert with what holds where it does not say it. */
export interface Alert {
  id: string
  name: string
  condition: ConditionName
  scope: { kind: StoredConfig['scope']['kind']; id: string | null }
  thresholds: readonly number[]
  windowMinutes: number
  atLeast: number
  severity: Severity
  reasons: readonly string[]
  quietMinutes: number
  channelIds: readonly string[]
  sendResolved: boolean
  /** When it was enabled again; 0: it never was disabled. What it found before keeps nothing quiet. */
  enabledAt: number
}

/** What is kept as JSON: what the record shows, and when it was enabled again. */
export const storedConfig = alertConfig.extend({ enabled_at: z.number().int().default(0) })
type StoredConfig = z.infer<typeof storedConfig>

export const configOf = ({ config }: Pick<AlertRow, 'config'>): StoredConfig => storedConfig.parse(JSON.parse(config))

/** Null for a condition of a later version. */
export function alertOf(row: AlertRow): Alert | null {
  const condition = conditionNames.find((name) => name === row.condition)
  if (condition === undefined) return null
  const config = configOf(row)
  const usual = conditionRow(condition)
  return {
    ...{ id: row.id, name: row.name, condition, scope: config.scope },
    thresholds: config.thresholds ?? usual.thresholds,
    windowMinutes: config.window_minutes ?? usual.windowMinutes ?? 0,
    atLeast: config.at_least ?? usual.atLeast ?? 0,
    severity: config.severity,
    reasons: config.reasons,
    quietMinutes: config.quiet_minutes,
    channelIds: config.channel_ids,
    sendResolved: config.send_resolved,
    enabledAt: config.enabled_at,
  }
}

export const findAlert = async (ledger: Reader, id: string): Promise<AlertRow | null> =>
  (await query(ledger).select().from(alerts).where(eq(alerts.id, id)).get()) ?? null

export const listAlerts = (ledger: Reader, after: string, limit: number): Promise<AlertRow[]> =>
  query(ledger).select().from(alerts).where(gt(alerts.id, after)).orderBy(alerts.id).limit(limit)

export const enabledAlerts = (ledger: Reader): Promise<AlertRow[]> =>
  query(ledger).select().from(alerts).where(eq(alerts.enabled, 1)).orderBy(alerts.id)

export const addAlert = (row: typeof alerts.$inferInsert): Statement => statement(insert(alerts).values(row))

const isUnchanged = ({ id, version }: AlertRow): Statement =>
  guard(hasRow(alerts, and(eq(alerts.id, id), eq(alerts.version, version))))

/** Changes an alert that is still as it was read. `ended` ends what it has open, where it is no longer looked at. */
export const changeAlert = (
  before: AlertRow,
  after: Pick<AlertRow, 'name' | 'enabled' | 'config'>,
  ended: readonly Statement[],
): Statement[] => [
  isUnchanged(before),
  statement(
    update(alerts)
      .set({ name: after.name, enabled: after.enabled, config: after.config, version: sql`${alerts.version} + 1` })
      .where(eq(alerts.id, before.id)),
  ),
  ...ended,
]

export const deleteAlert = (before: AlertRow, ended: readonly Statement[]): Statement[] => [
  isUnchanged(before),
  statement(remove(alerts).where(eq(alerts.id, before.id))),
  ...ended,
]

/** Holds where an alert has nothing open. */
export const hasNoneOpen = (alertId: string): Statement =>
  guard(sql`not ${hasRow(alertFirings, and(eq(alertFirings.alertId, alertId), isNull(alertFirings.resolvedAt)))}`)

/** Of one alert, or of all. */
export const openFirings = (ledger: Reader, alertId?: string): Promise<FiringRow[]> =>
  query(ledger)
    .select()
    .from(alertFirings)
    .where(and(isNull(alertFirings.resolvedAt), alertId === undefined ? undefined : eq(alertFirings.alertId, alertId)))

/** What is open and was announced; a nearer threshold that was reached with it is not counted beside it. */
export const isAnnouncedAndOpen = and(eq(alertFirings.announced, 1), isNull(alertFirings.resolvedAt))

/** How many things each of these alerts has found that are not over, as the history lists them. */
export async function openCounts(ledger: Reader, ids: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const rows = await query(ledger)
    .select({ id: alertFirings.alertId, open: count() })
    .from(alertFirings)
    .where(and(isOneOf(alertFirings.alertId, ids), isAnnouncedAndOpen))
    .groupBy(alertFirings.alertId)
  return new Map(rows.map(({ id, open }) => [id, open]))
}

interface Same {
  alertId: string
  subject: string
  threshold: number
}

/**
 * Whether it may not fire: it is open, it fired within the quiet time, or it fires once only and has. What fired before
 * the alert was enabled again, or in the future, before a clock was set back, does not keep it quiet.
 */
const heldBack = ({ alertId, subject, threshold }: Same, { now, quietMs, once, enabledAt }: Quiet) =>
  hasRow(
    alertFirings,
    and(
      eq(alertFirings.alertId, alertId),
      eq(alertFirings.subject, subject),
      eq(alertFirings.threshold, threshold),
      or(
        isNull(alertFirings.resolvedAt),
        and(gt(alertFirings.firedAt, enabledAt), once ? undefined : between(alertFirings.firedAt, now - quietMs, now)),
      ),
    ),
  )

export interface Quiet {
  now: number
  quietMs: number
  once: boolean
  /** When the alert was enabled again. */
  enabledAt: number
}

export async function isHeldBack(ledger: Reader, same: Same, quiet: Quiet): Promise<boolean> {
  const [row] = await query(ledger)
    .select({ held: sql<number>`${heldBack(same, quiet)}` })
    .from(sql`(select 1)`)
  return row?.held === 1
}

/**
 * Keeps a firing, unless another control plane was first or the alert was disabled or deleted; the statements of its
 * notices follow in the same batch.
 */
export const addFiring = (row: FiringRow, quiet: Quiet): Statement[] => [
  guard(hasRow(alerts, and(eq(alerts.id, row.alertId), eq(alerts.enabled, 1)))),
  guard(sql`not ${heldBack(row, quiet)}`),
  statement(insert(alertFirings).values(row)),
]

/** Marks an open firing as announced, with what is measured now, unless one of its subject is announced already. */
export const announce = ({ id, alertId, subject, value, about }: FiringRow): Statement[] => [
  guard(hasRow(alertFirings, and(eq(alertFirings.id, id), isNull(alertFirings.resolvedAt)))),
  guard(
    sql`not ${hasRow(alertFirings, and(eq(alertFirings.alertId, alertId), eq(alertFirings.subject, subject), isAnnouncedAndOpen))}`,
  ),
  statement(update(alertFirings).set({ value, about, announced: 1 }).where(eq(alertFirings.id, id))),
]

export const endFiring = ({ id }: FiringRow, now: number): Statement[] => [
  guard(hasRow(alertFirings, and(eq(alertFirings.id, id), isNull(alertFirings.resolvedAt)))),
  statement(update(alertFirings).set({ resolvedAt: now }).where(eq(alertFirings.id, id))),
]

export const addDelivery = (
  row: Pick<DeliveryRow, 'id' | 'firingId' | 'channelId' | 'kind' | 'createdAt'>,
): Statement => statement(insert(alertDeliveries).values({ ...row, state: 'pending' }))

/** The channels to which it was announced, or is to be, that it fired. */
export async function announcedChannels(ledger: Reader, firingId: string): Promise<string[]> {
  const rows = await query(ledger)
    .select({ channelId: alertDeliveries.channelId })
    .from(alertDeliveries)
    .where(and(eq(alertDeliveries.firingId, firingId), eq(alertDeliveries.kind, 'fired')))
  return rows.map(({ channelId }) => channelId)
}

/** Newest first. */
export const listFirings = (
  ledger: Reader,
  { before, limit, alertId, open }: { before: string | null; limit: number; alertId?: string; open?: boolean },
): Promise<FiringRow[]> =>
  query(ledger)
    .select()
    .from(alertFirings)
    .where(
      and(
        eq(alertFirings.announced, 1),
        before === null ? undefined : lt(alertFirings.id, before),
        alertId === undefined ? undefined : eq(alertFirings.alertId, alertId),
        open === undefined
          ? undefined
          : open
            ? isNull(alertFirings.resolvedAt)
            : sql`${alertFirings.resolvedAt} is not null`,
      ),
    )
    .orderBy(desc(alertFirings.id))
    .limit(limit)

export const deliveriesOf = (ledger: Reader, firingIds: readonly string[]): Promise<DeliveryRow[]> =>
  query(ledger)
    .select()
    .from(alertDeliveries)
    .where(isOneOf(alertDeliveries.firingId, firingIds))
    .orderBy(alertDeliveries.id)

/** Removes what was over before an instant, a bounded part at a time. */
export const removeOldFirings = (before: number): Statement[] => {
  const old = 'select id from alert_firings where fired_at < ?1 and resolved_at < ?1 limit 500'
  return [
    { sql: `delete from alert_deliveries where firing_id in (${old})`, args: [before] },
    { sql: `delete from alert_firings where id in (${old})`, args: [before] },
  ]
}

/**
 * Takes or keeps the lease to evaluate: whether this control plane has it. It is compared in the time of the database,
 * so that a host's clock has no say.
 */
export async function holdLease(ledger: Database, holder: string, milliseconds: number): Promise<boolean> {
  const until = sql.raw(`${databaseTime} + ${Math.trunc(milliseconds)}`)
  const claim = insert(alertLease)
    .values({ id: 1, holder, until: sql`${until}` })
    .onConflictDoUpdate({
      target: alertLease.id,
      set: { holder, until: sql`${until}` },
      setWhere: sql`${alertLease.holder} = ${holder} or ${alertLease.until} not between ${sql.raw(databaseTime)} and ${sql.raw(databaseTime)} + ${Math.trunc(milliseconds)}`,
    })
  const rows = await ledger.writeAndRead<{ holder: string }>([
    statement(claim),
    { sql: 'select holder from alert_lease where id = 1', args: [] },
  ])
  return rows[0]?.holder === holder
}

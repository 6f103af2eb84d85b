/**
 * The queries of channels: the records, their sealed secrets, and who sends to which one. Times of sending are those of
 * the database, so that hosts' clocks need not agree.
 *
 * SQL text: claims compare times of the database in one statement each.
 */
import { and, eq, gt, sql } from 'drizzle-orm'
import type { MasterKey } from '../../store/keys/master-key.ts'
import { forgetSecret, keepSecret, openSecret } from '../../store/keys/secrets.ts'
import { type Database, databaseTime, type Reader } from '../../store/open.ts'
import { guard, hasRow, insert, isOneOf, query, remove, statement, update } from '../../store/query.ts'
import { alertChannels, alertDeliveries } from '../../store/schema/ledger/alerts.ts'
import type { Statement } from '../../store/statement.ts'
import { type ChannelConfig, type ChannelSecrets, channelConfig, channelSecrets } from '../channel-resource.ts'

export type ChannelRow = typeof alertChannels.$inferSelect

/** A channel with all that sending needs. */
export interface Channel extends Pick<ChannelRow, 'id' | 'name' | 'kind'> {
  config: ChannelConfig
  secrets: ChannelSecrets
}

interface Sealed {
  ledger: Database
  masterKey: MasterKey
}

const secretName = (id: string): string => `alert-channel:${id}`

export const configOf = ({ config }: Pick<ChannelRow, 'config'>): ChannelConfig =>
  channelConfig.parse(JSON.parse(config))

export async function secretsOf({ ledger, masterKey }: Sealed, id: string): Promise<ChannelSecrets> {
  const text = await openSecret(ledger, masterKey, secretName(id))
  return text === null ? {} : channelSecrets.parse(JSON.parse(text))
}

export const openChannel = async (sealed: Sealed, row: ChannelRow): Promise<Channel> => ({
  ...{ id: row.id, name: row.name, kind: row.kind, config: configOf(row) },
  secrets: await secretsOf(sealed, row.id),
})

export const findChannel = async (ledger: Reader, id: string): Promise<ChannelRow | null> =>
  (await query(ledger).select().from(alertChannels).where(eq(alertChannels.id, id)).get()) ?? null

export const listChannels = (ledger: Reader, after: string, limit: number): Promise<ChannelRow[]> =>
  query(ledger).select().from(alertChannels).where(gt(alertChannels.id, after)).orderBy(alertChannels.id).limit(limit)

export async function enabledChannelIds(ledger: Reader): Promise<string[]> {
  const rows = await query(ledger)
    .select({ id: alertChannels.id })
    .from(alertChannels)
    .where(eq(alertChannels.enabled, 1))
    .orderBy(alertChannels.id)
  return rows.map(({ id }) => id)
}

/** Those of these ids that there are. */
export const knownChannels = (ledger: Reader, ids: readonly string[]): Promise<{ id: string; name: string }[]> =>
  query(ledger)
    .select({ id: alertChannels.id, name: alertChannels.name })
    .from(alertChannels)
    .where(isOneOf(alertChannels.id, ids))

/** How many notices wait for each channel. */
export async function waitingCounts(ledger: Reader, ids: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const rows = await query(ledger)
    .select({ id: alertDeliveries.channelId, waiting: sql<number>`count(*)` })
    .from(alertDeliveries)
    .where(and(eq(alertDeliveries.state, 'pending'), isOneOf(alertDeliveries.channelId, ids)))
    .groupBy(alertDeliveries.channelId)
  return new Map(rows.map(({ id, waiting }) => [id, waiting]))
}

export const addChannel = (row: typeof alertChannels.$inferInsert): Statement =>
  statement(insert(alertChannels).values(row))

export const keepSecrets = (masterKey: MasterKey, id: string, secrets: ChannelSecrets, now: number): Statement[] => [
  forgetSecret(secretName(id)),
  ...(Object.keys(secrets).length === 0 ? [] : [keepSecret(masterKey, secretName(id), JSON.stringify(secrets), now)]),
]

const isUnchanged = ({ id, version }: ChannelRow): Statement =>
  guard(hasRow(alertChannels, and(eq(alertChannels.id, id), eq(alertChannels.version, version))))

/** Changes a channel that is still as it was read; it is tried again at once. One that is switched off gets nothing. */
export const changeChannel = (
  before: ChannelRow,
  after: Pick<ChannelRow, 'name' | 'enabled' | 'config'>,
): Statement[] => [
  isUnchanged(before),
  statement(
    update(alertChannels)
      .set({
        ...{ name: after.name, enabled: after.enabled, config: after.config, retryAt: 0 },
        version: sql`${alertChannels.version} + 1`,
      })
      .where(eq(alertChannels.id, before.id)),
  ),
  ...(after.enabled === 1 ? [] : [dropWaiting(before.id, 'The channel was switched off')]),
]

export const deleteChannel = (before: ChannelRow): Statement[] => [
  isUnchanged(before),
  statement(remove(alertChannels).where(eq(alertChannels.id, before.id))),
  dropWaiting(before.id, 'The channel was deleted'),
  forgetSecret(secretName(before.id)),
]

const dropWaiting = (channelId: string, error: string): Statement =>
  statement(
    update(alertDeliveries)
      .set({ state: 'failed', error })
      .where(and(eq(alertDeliveries.channelId, channelId), eq(alertDeliveries.state, 'pending'))),
  )

/** Enabled channels for which notices wait, and which may be tried now. */
export async function dueChannels(ledger: Reader): Promise<string[]> {
  const rows = await ledger.read<{ id: string }>(
    `select id from alert_channels c where enabled = 1 and retry_at <= ${databaseTime}
      and (claimed_until <= ${databaseTime} or claimed_until > ${databaseTime} + ${claimMs})
      and exists (select 1 from alert_deliveries d where d.channel_id = c.id and d.state = 'pending')`,
  )
  return rows.map(({ id }) => id)
}

/** For so long one control plane sends to a channel alone, from one notice to the next. A mail takes at most 20 s. */
export const claimMs = 30_000

/** Takes a channel, or keeps it: whether this control plane has it. */
export async function claimChannel(ledger: Database, id: string, holder: string): Promise<boolean> {
  const rows = await ledger.writeAndRead<{ claimed_by: string | null }>([
    {
      sql: `update alert_channels set claimed_by = ?2, claimed_until = ${databaseTime} + ${claimMs} where id = ?1
        and (claimed_by = ?2 or claimed_until <= ${databaseTime} or claimed_until > ${databaseTime} + ${claimMs})`,
      args: [id, holder],
    },
    { sql: 'select claimed_by from alert_channels where id = ?', args: [id] },
  ])
  return rows[0]?.claimed_by === holder
}

export const releaseChannel = (id: string, holder: string): Statement => ({
  sql: 'update alert_channels set claimed_by = null, claimed_until = 0 where id = ? and claimed_by = ?',
  args: [id, holder],
})

/** The notice arrived. */
export const delivered = (channelId: string, deliveryId: string): Statement[] => [
  {
    sql: `update alert_deliveries set state = 'sent', attempts = attempts + 1, error = null, sent_at = ${databaseTime} where id = ?`,
    args: [deliveryId],
  },
  {
    sql: `update alert_channels set failures = 0, failing_since = null, retry_at = 0, last_error = null,
      last_sent_at = ${databaseTime} where id = ?`,
    args: [channelId],
  },
]

/** The channel failed: it rests for some time, and the notice waits. */
export const rested = (channelId: string, deliveryId: string, { error, restMs }: { error: string; restMs: number }) => [
  { sql: 'update alert_deliveries set attempts = attempts + 1, error = ? where id = ?', args: [error, deliveryId] },
  {
    sql: `update alert_channels set failures = failures + 1, failing_since = coalesce(failing_since, ${databaseTime}),
      retry_at = ${databaseTime} + ?, last_error = ? where id = ?`,
    args: [restMs, error, channelId],
  },
]

/** The notice is given up. */
export const givenUp = (channelId: string, deliveryId: string, error: string): Statement[] => [
  {
    sql: `update alert_deliveries set state = 'failed', attempts = attempts + 1, error = ? where id = ?`,
    args: [error, deliveryId],
  },
  { sql: 'update alert_channels set last_error = ? where id = ?', args: [error, channelId] },
]

/** The rows of sinks, and their sealed credentials. */
import { and, eq, gt, sql } from 'drizzle-orm'
import type { MasterKey } from '../store/keys/master-key.ts'
import { forgetSecret, keepSecret, openSecret } from '../store/keys/secrets.ts'
import type { Database } from '../store/open.ts'
import { guard, hasRow, insert, query, remove, statement, update } from '../store/query.ts'
import { sinkDeliveries, sinks } from '../store/schema/ledger/sinks.ts'
import type { Statement } from '../store/statement.ts'
import type { SinkAndDelivery, SinkRow } from './delivery/cursor.ts'
import type { Sink } from './sink.ts'
import { configSchema, credentialsSchema, type SinkCredentials, sinkFormats, sinkKinds } from './sink-resource.ts'

interface Sealed {
  ledger: Database
  masterKey: MasterKey
}

const secretName = (id: string): string => `sink:${id}`

export const configOf = ({ config }: Pick<SinkRow, 'config'>) => configSchema.parse(JSON.parse(config))
export const kindOf = ({ kind }: Pick<SinkRow, 'kind'>) => sinkKinds.find((known) => known === kind) ?? 'http'
export const formatOf = ({ format }: Pick<SinkRow, 'format'>) =>
  sinkFormats.find((known) => known === format) ?? 'events'

/** A sink with its credentials. Throws where the master key does not open them. */
export async function openSink(sealed: Sealed, row: SinkRow): Promise<Sink> {
  const { id, name, url, filter, version } = row
  const credentials = await credentialsOf(sealed, id)
  return {
    id,
    name,
    url,
    filter,
    version,
    kind: kindOf(row),
    format: formatOf(row),
    config: configOf(row),
    credentials,
  }
}

export async function credentialsOf({ ledger, masterKey }: Sealed, id: string): Promise<SinkCredentials> {
  const text = await openSecret(ledger, masterKey, secretName(id))
  return text === null ? {} : credentialsSchema.parse(JSON.parse(text))
}

export const listSinks = (ledger: Database, after: string, count: number): Promise<SinkAndDelivery[]> =>
  query(ledger)
    .select({ sink: sinks, delivery: sinkDeliveries })
    .from(sinks)
    .innerJoin(sinkDeliveries, eq(sinkDeliveries.sinkId, sinks.id))
    .where(gt(sinks.id, after))
    .orderBy(sinks.id)
    .limit(count)

export const addSink = (row: SinkRow, position: number): Statement[] => [
  statement(insert(sinks).values(row)),
  statement(insert(sinkDeliveries).values({ sinkId: row.id, position })),
]

/** Replaces the credentials; null takes them away. */
export const setCredentials = (
  masterKey: MasterKey,
  id: string,
  credentials: SinkCredentials | null,
  now: number,
): Statement[] => [
  forgetSecret(secretName(id)),
  ...(credentials === null ? [] : [keepSecret(masterKey, secretName(id), JSON.stringify(credentials), now)]),
]

const isUnchanged = ({ id, version }: SinkRow): Statement =>
  guard(hasRow(sinks, and(eq(sinks.id, id), eq(sinks.version, version))))

/** Ends the pause of a sink that failed. */
export const tryAgain = (id: string): Statement =>
  statement(update(sinkDeliveries).set({ retryAt: 0 }).where(eq(sinkDeliveries.sinkId, id)))

/** Changes a sink that is still as it was read. What had failed is tried again at once. */
export const changeSink = (
  before: SinkRow,
  { name, url, format, filter, config, credentialNames, enabled }: SinkRow,
) => [
  isUnchanged(before),
  statement(
    update(sinks)
      .set({ name, url, format, filter, config, credentialNames, enabled, version: sql`${sinks.version} + 1` })
      .where(eq(sinks.id, before.id)),
  ),
  tryAgain(before.id),
]

/** Deletes a sink that is still as it was read. */
export const deleteSink = (before: SinkRow): Statement[] => [
  isUnchanged(before),
  statement(remove(sinks).where(eq(sinks.id, before.id))),
  statement(remove(sinkDeliveries).where(eq(sinkDeliveries.sinkId, before.id))),
  forgetSecret(secretName(before.id)),
]

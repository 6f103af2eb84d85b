/** The connection to the ClickHouse that the settings name. Its client is loaded only where there is one. */
import type { Settings } from '../../config.ts'
import { Failure } from '../../failure.ts'
import { Archive } from './archive.ts'
import { archiveFaults } from './archive-state.ts'

export interface ConnectedArchive {
  archive: Archive
  close(): Promise<void>
}

/** How long an answer may take, in milliseconds. */
const timeoutMilliseconds = 60_000

/**
 * Null where the ledger keeps the whole log. Throws `invalid_parameter` where ClickHouse answers and cannot keep the
 * records. One that does not answer stops nothing: records stay in the ledger until it does.
 */
export async function connectArchive({
  events_url: url,
  events_user: username,
  events_password: password,
}: Pick<Settings, 'events_url' | 'events_user' | 'events_password'>): Promise<ConnectedArchive | null> {
  if (url === undefined) return null
  const { ClickHouseLogLevel, createClient } = await import('@clickhouse/client')
  const client = createClient({
    url,
    username,
    ...(password === undefined ? {} : { password }),
    application: 'gatehouse',
    request_timeout: timeoutMilliseconds,
    // Errors are thrown, and logged by who catches them.
    log: { level: ClickHouseLogLevel.OFF },
  })
  const archive = new Archive(client)
  const state = await archive.table.state()
  if (state === 'ready' || state === 'away') return { archive, close: () => client.close() }
  await client.close()
  const { what, todo, param } = archiveFaults[state]
  throw new Failure('invalid_parameter', { param, message: `${what}. ${todo}` })
}

/** Both databases in a directory of their own, with this release's tables, for tests. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { permissionsOf } from '../../identity/permissions.ts'
import { anonymous, type Principal } from '../../identity/principal.ts'
import type { Clock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log/log.ts'
import type { Database } from '../../store/open.ts'
import { openMigrated } from '../../store/testing/store.ts'
import { createRecorder } from '../change.ts'
import { logOf } from '../engine/log-of.ts'
import { type Event, noAttribution } from '../event.ts'
import type { ExportDependencies } from '../export/export-job.ts'
import type { ExportRunner } from '../export/export-runner.ts'

export interface TestDatabases {
  state: Database
  ledger: Database
  /** Closes both and removes the directory. */
  remove(): void
}

export async function openTestDatabases(): Promise<TestDatabases> {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-events-'))
  const state = await openMigrated('state', directory)
  const ledger = await openMigrated('ledger', directory)
  await state.write([
    {
      sql: 'insert or replace into state_head (id, version, nonce, history, reads_from, deletions_kept_from) values (1, 1, ?, ?, ?, 0)',
      args: ['first', 'history', '0.2.0'],
    },
  ])
  return {
    state,
    ledger,
    remove() {
      state.close()
      ledger.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** Declares dimensions of attribution, as far as reports ask for them. */
export const declareDimensions = (state: Database, ...names: readonly string[]): Promise<unknown> =>
  state.write(
    names.map((name) => ({
      sql: `insert or replace into attribution_dimensions (id, name, source_kind, source_key, max_values, required, version,
        deleted) values (?, ?, 'header', 'x-test', 10, 0, 1, 0)`,
      args: [name, name],
    })),
  )

/** Empties every table that tests write to. */
export async function emptyTestDatabases({ state, ledger }: TestDatabases): Promise<void> {
  const empty = (table: string) => ({ sql: `delete from ${table}`, args: [] })
  await state.write(['change_log', 'gateways'].map(empty))
  await logOf(ledger).outside?.remove(Number.MAX_SAFE_INTEGER)
  await ledger.write(
    [
      'pending_changes',
      'event_segments',
      'event_blocks',
      'segment_facets',
      'segment_chains',
      'event_rollups',
      'event_sessions',
      'pending_event_rollups',
      'chains',
      'secrets',
      'idempotency_keys',
      'export_jobs',
    ].map(empty),
  )
}

/** An event as a gateway or the control plane might write it. */
export const testEvent = (change: Partial<Event> = {}): Event => ({
  event_id: Bun.randomUUIDv7(),
  event_type: 'gateway.request.outcome',
  request_id: 'request-1',
  timestamp: '2026-01-01T00:00:00.000Z',
  verdict: 'allow',
  reason_code: 'ok',
  config_version: 1,
  event_attribution: noAttribution,
  ...change,
})

/** A caller that sees every event. */
export const testOwner: Principal = {
  ...anonymous,
  kind: 'token',
  name: 'token:owner',
  roles: ['owner'],
  permissions: permissionsOf(['owner']),
}

/** The dependencies of the event routes, without exports. */
export const testEventDependencies = (
  { state, ledger }: TestDatabases,
  clock: Clock,
): ExportDependencies & { exports: Pick<ExportRunner, 'start' | 'fileOf'> } => ({
  ...{ state, ledger, clock, newId, log: silentLog },
  recorder: createRecorder({ state, ledger, announce: () => undefined, clock, log: silentLog }),
  exports: { start: () => undefined, fileOf: ({ id }) => id },
})

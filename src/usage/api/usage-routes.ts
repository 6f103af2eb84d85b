/**
 * `/v1/usage`: what is used of limits, who holds shares of them, and giving up a worker that is lost. Reading needs
 * `catalog:read`, which those have who run gateways; freeing needs `tokens:write`. A token that is bound to a team or a
 * user sees the accounts of its own tokens and budgets; a token of a team frees nothing, since that is for everybody.
 */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { readCursor, writeCursor } from '../../api/cursor.ts'
import { pageQuery } from '../../api/page.ts'
import { controlPlaneEvent, versionNow } from '../../events/control-plane-event.ts'
import type { Recorder } from '../../events/recorder.ts'
import { Failure } from '../../failure.ts'
import { type Clock, timestamp } from '../../lib/clock.ts'
import type { NewId } from '../../lib/ids.ts'
import type { Database } from '../../store/open.ts'
import { everyBalance } from '../batches/batch-returns.ts'
import { resume, workersPendingReconciliation } from '../lease/allocator/restored-ledger.ts'
import { maxAmount, plainName } from '../lease/lease.ts'
import { visibleAccounts } from './visible-limits.ts'

export interface UsageDependencies {
  state: Database
  ledger: Database
  recorder: Recorder
  clock: Clock
  newId: NewId
  /** Amounts of these accounts were set free. */
  freed(accounts: readonly string[]): void
}

const amount = z.number().int().describe('Requests, or nano-dollars')
const accountSchema = z.object({
  account: z.string(),
  settled: amount,
  held: amount.describe('Granted to workers and neither settled nor returned'),
  workers: z.number().int().describe('Workers that hold some of it'),
  exhausted_at: z.iso.datetime().nullable(),
})

const workerSchema = z.object({
  worker: z.string(),
  last_heartbeat_at: z.iso.datetime(),
  lost_at: z.iso.datetime().nullable(),
  released_at: z.iso.datetime().nullable(),
  pending_reconciliation: z
    .boolean()
    .describe('Nothing is granted to anybody before this worker has said what it holds'),
  held: z.array(z.object({ account: z.string(), amount })),
})

/** A worker that heartbeat within so long is running: what it holds is its own to give back. */
const silentMs = 60_000

export const usageRoutes = (dependencies: UsageDependencies) => {
  const { state, ledger, recorder, clock, newId } = dependencies
  return new Elysia({ name: 'usage' })
    .use(conventions)
    .get(
      '/v1/usage/accounts',
      async ({ principal, query: { limit, cursor, prefix } }) => {
        const seen = await visibleAccounts({ state, ledger }, principal)
        const filters = { list: 'usage-accounts', prefix }
        const rows = await ledger.read<AccountRow>(
          `select c.account, min(sum(c.settled), ${maxAmount}) as settled, sum(c.granted - c.returned - c.settled) as held,
           sum(c.granted - c.returned - c.settled > 0) as workers, u.exhausted_at
         from ${everyBalance} c left join usage_accounts u on u.account = c.account
         where c.account > ? and substr(c.account, 1, length(?)) = ? and ${seen.sql}
         group by c.account order by c.account limit ?`,
          [
            ...[cursor === undefined ? '' : readCursor(cursor, filters, z.string()), prefix, prefix],
            ...[...seen.args, limit + 1],
          ],
        )
        const page = rows.slice(0, limit)
        const last = page.at(-1)
        return {
          accounts: page.map((row) => ({ ...row, exhausted_at: time(row.exhausted_at) })),
          next_cursor: rows.length > limit && last !== undefined ? writeCursor(last.account, filters) : null,
        }
      },
      {
        access: 'catalog:read',
        query: z.strictObject({
          ...pageQuery,
          prefix: z.string().max(128).default(''),
        }),
        response: z.object({ accounts: z.array(accountSchema), next_cursor: z.string().nullable() }),
        detail: {
          tags: ['Usage'],
          summary: 'Lists accounts of limits of which something was used or is held, by name',
        },
      },
    )
    .get(
      '/v1/usage/workers',
      async ({ principal, query: { limit, cursor } }) => {
        const seen = await visibleAccounts({ state, ledger }, principal)
        const filters = { list: 'usage-workers' }
        const after = cursor === undefined ? '' : readCursor(cursor, filters, z.string())
        const rows = await ledger.read<WorkerRow>(
          `${workerRows(seen.sql)} where l.worker > ? order by l.worker limit ?`,
          [...seen.args, after, limit + 1],
        )
        const page = rows.slice(0, limit)
        const last = page.at(-1)
        const next = rows.length > limit && last !== undefined ? writeCursor(last.worker, filters) : null
        return { workers: page.map(workerRecord), next_cursor: next }
      },
      {
        access: 'catalog:read',
        query: z.strictObject(pageQuery),
        response: z.object({ workers: z.array(workerSchema), next_cursor: z.string().nullable() }),
        detail: { tags: ['Usage'], summary: 'Lists the workers of gateways with what they hold of limits' },
      },
    )
    .post(
      '/v1/usage/release',
      async ({ principal, body: { worker }, requestId }) => {
        const { ledger, state, recorder, clock, newId } = dependencies
        const row = await requireWorker(ledger, worker)
        if (row.released_at !== null) return workerRecord(row)
        if (row.last_heartbeat_at > clock.now() - silentMs)
          throw new Failure('conflict', { message: stillRunning, param: 'worker' })
        const freed = workerRecord(row).held
        const event = controlPlaneEvent({
          ...{ type: 'usage.released', principal, requestId, clock, newId, details: { worker, amounts: freed } },
          configVersion: await versionNow(state),
        })
        await recorder.change({
          event,
          state: [],
          ledger: [
            {
              sql: `insert into guards (holds) select 0 where not exists (
              select 1 from workers where worker = ? and released_at is null and last_heartbeat_at = ?)`,
              args: [worker, row.last_heartbeat_at],
            },
            {
              sql: 'update workers set released_at = ?, stream_id = ?, pending_reconciliation = 0 where worker = ?',
              args: [clock.now(), `released-${newId()}`, worker],
            },
            { sql: 'update lease_balances set returned = granted - settled where worker = ?', args: [worker] },
          ],
        })
        dependencies.freed(freed.map(({ account }) => plainName(account)))
        return workerRecord(await requireWorker(ledger, worker))
      },
      {
        failures: [404],
        access: 'tokens:write',
        wholeOrganization: true,
        body: z.strictObject({ worker: z.string().min(1).max(300) }),
        response: workerSchema,
        detail: { tags: ['Usage'], summary: 'Frees what a lost worker holds of limits; the worker never comes back' },
      },
    )
    .post(
      '/v1/usage/resume',
      async ({ principal, requestId }) => {
        const workers = (await workersPendingReconciliation(ledger)).map(({ worker }) => worker)
        if (workers.length === 0) return { workers }
        const event = controlPlaneEvent({
          ...{ type: 'usage.released', principal, requestId, clock, newId, details: { resumed: true, workers } },
          configVersion: await versionNow(state),
        })
        await recorder.change({ event, state: [], ledger: [resume(clock.now())] })
        return { workers }
      },
      {
        access: 'tokens:write',
        wholeOrganization: true,
        body: z.strictObject({}),
        response: z.object({ workers: z.array(z.string()).describe('Those that were waited for') }),
        detail: {
          tags: ['Usage'],
          summary: 'Grants again from a restored ledger, without the workers that have not said what they hold',
        },
      },
    )
}

interface AccountRow {
  account: string
  settled: number
  held: number
  workers: number
  exhausted_at: number | null
}

interface WorkerRow {
  worker: string
  last_heartbeat_at: number
  lost_at: number | null
  released_at: number | null
  pending_reconciliation: number
  held: string
}

const workerRows = (
  seen: string,
) => `select l.worker, l.last_heartbeat_at, l.lost_at, l.released_at, l.pending_reconciliation, (
    select json_group_array(json_object('account', c.account, 'amount', c.granted - c.returned - c.settled))
    from lease_balances c where c.worker = l.worker and c.granted - c.returned - c.settled > 0 and ${seen}) as held
  from workers l`

/**
 * What a worker holds that never comes back becomes free. Only for one that has been silent: a worker that still runs
 * would go on spending what others then have too, so the control plane ends it (`worker_rolled_back`) should it
 * return.
 */

/** After the ledger was restored from an older copy: ends the wait for workers that have not registered. */

const stillRunning = 'The worker heartbeat within the last minute: stop its gateway, or wait until it is silent'

async function requireWorker(ledger: Database, worker: string): Promise<WorkerRow> {
  const [row] = await ledger.read<WorkerRow>(`${workerRows('true')} where l.worker = ?`, [worker])
  if (row === undefined) throw new Failure('not_found', { message: 'There is no such worker' })
  return row
}

const heldSchema = z.array(z.object({ account: z.string(), amount: z.number().int() }))

const workerRecord = ({
  worker,
  last_heartbeat_at,
  lost_at,
  released_at,
  pending_reconciliation,
  held,
}: WorkerRow) => ({
  worker,
  last_heartbeat_at: timestamp(last_heartbeat_at),
  lost_at: time(lost_at),
  released_at: time(released_at),
  pending_reconciliation: pending_reconciliation === 1,
  held: heldSchema.parse(JSON.parse(held)),
})

const time = (at: number | null): string | null => (at === null ? null : timestamp(at))

/**
 * `/v1/gateway-workers`: all workers and their progress, from the ledger that all control planes share. Released
 * workers never come back and are left out.
 */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../../api/conventions.ts'
import { cutPage, pageQuery, startOf } from '../../../api/page.ts'
import { timestamp } from '../../../lib/clock.ts'
import { databaseTime } from '../../../store/open.ts'
import { readNames } from '../../../store/schema/gateway-name.ts'
import { staleAfterMs } from '../../protocol/wire.ts'
import type { StateHead } from '../../state/state-head.ts'
import type { FleetOptions } from '../options.ts'

/** A worker sends a heartbeat every second and counts as connected for three. Its row is at most a second behind. */
const connectedMs = 3000 + 1000

const instant = z.iso.datetime()
const workerSchema = z.string().max(128)

export const gatewayWorkerSchema = z.object({
  worker: z.string(),
  gateway_id: z.uuid(),
  gateway_name: z.string(),
  instance_id: z.uuid(),
  worker_number: z.number().int(),
  version: z.string().describe('Of the software; empty where it has not said'),
  connected: z.boolean().describe('Whether it heartbeat within the last 3 s'),
  acknowledged_version: z.number().int().describe('Up to here it refuses what was revoked'),
  state_version: z.number().int().describe('Where the state is now'),
  connected_at: instant.describe('When it last opened its stream'),
  last_heartbeat_at: instant.nullable().describe('Null before the first'),
  serves_until: instant
    .nullable()
    .describe(
      'Last heartbeat + max_staleness: from then on it refuses, unless it heartbeats; null where it serves no more',
    ),
  left_at: instant.nullable().describe('When it said goodbye'),
})

interface WorkerRow {
  worker: string
  gateway_id: string
  instance_id: string
  worker_number: number
  gateway_version: string
  acknowledged_version: number
  last_heartbeat_at: number
  connected_at: number
  left_at: number | null
  stale_after_ms: number | null
  read_at: number
}

export interface WorkersDependencies {
  options: Pick<FleetOptions, 'ledger' | 'settings'>
  stateHead: StateHead
}

function workerRecord(
  row: WorkerRow,
  gatewayName: string,
  { stateVersion, staleMs }: { stateVersion: number; staleMs: number },
): z.infer<typeof gatewayWorkerSchema> {
  const left = row.left_at
  const beaten = row.last_heartbeat_at > 0
  return {
    worker: row.worker,
    gateway_id: row.gateway_id,
    gateway_name: gatewayName,
    instance_id: row.instance_id,
    worker_number: row.worker_number,
    version: row.gateway_version,
    connected: left === null && row.read_at - row.last_heartbeat_at < connectedMs,
    acknowledged_version: row.acknowledged_version,
    state_version: stateVersion,
    connected_at: timestamp(row.connected_at),
    last_heartbeat_at: beaten ? timestamp(row.last_heartbeat_at) : null,
    serves_until: beaten && left === null ? timestamp(row.last_heartbeat_at + (row.stale_after_ms ?? staleMs)) : null,
    left_at: left === null ? null : timestamp(left),
  }
}

export const workersRoute = ({ options: { ledger, settings }, stateHead }: WorkersDependencies) =>
  new Elysia({ name: 'runtime workers' }).use(conventions).get(
    '/v1/gateway-workers',
    async ({ query: { limit, cursor, gateway_id } }) => {
      const filters = { list: 'gateway-workers', gateway_id }
      const found = await ledger.read<WorkerRow>(
        `select *, ${databaseTime} as read_at from workers where released_at is null and worker > ?1
          and (?2 is null or gateway_id = ?2) order by worker limit ?3`,
        [startOf(cursor, filters, workerSchema) ?? '', gateway_id ?? null, limit + 1],
      )
      const named = found.map((row) => ({ id: row.worker, ...row }))
      const { rows, next_cursor } = cutPage(named, limit, filters)
      const gatewayIds = rows.map((row) => row.gateway_id)
      const [{ head }, nameOf] = await Promise.all([stateHead.recent(), readNames(ledger, gatewayIds)])
      const at = { stateVersion: head.version, staleMs: staleAfterMs(settings.max_staleness_seconds) }
      return { workers: rows.map((row) => workerRecord(row, nameOf(row.gateway_id), at)), next_cursor }
    },
    {
      access: 'catalog:read',
      query: z.strictObject({ gateway_id: z.uuid().optional(), ...pageQuery }),
      response: z.object({ workers: z.array(gatewayWorkerSchema), next_cursor: z.string().nullable() }),
      detail: {
        tags: ['Gateways'],
        summary: 'Lists the workers of gateways: which are connected, how far each is, and until when it serves',
      },
    },
  )

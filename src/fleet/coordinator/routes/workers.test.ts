import { afterEach, beforeEach, expect, test } from 'bun:test'
import { z } from 'zod'
import { eventually } from '../../../../test/support/eventually.ts'
import { newId } from '../../../lib/ids.ts'
import { version } from '../../../version.ts'
import { TemporaryFleet } from '../../testing/temporary-fleet.ts'
import { gatewayWorkerSchema } from './workers.ts'

const pageSchema = z.object({ workers: z.array(gatewayWorkerSchema), next_cursor: z.string().nullable() })

let fleet: TemporaryFleet

beforeEach(async () => {
  fleet = await TemporaryFleet.start()
})

afterEach(async () => {
  await fleet.remove()
})

async function ask(query: Readonly<Record<string, string>> = {}) {
  const search = new URLSearchParams(query)
  const answer = await fetch(`${fleet.url}/v1/gateway-workers?${search}`, {
    headers: { authorization: `Bearer ${fleet.runtimeToken}` },
  })
  return pageSchema.parse(await answer.json())
}

/** A worker that some control plane has written. */
const keepWorker = async (gatewayId: string, lastHeartbeatAt: number): Promise<string> => {
  const instanceId = newId()
  const worker = `${gatewayId}/${instanceId}/0`
  await fleet.ledger.write([
    {
      sql: `insert into workers (worker, gateway_id, instance_id, worker_number, stream_id, gateway_version, acknowledged_version,
              last_heartbeat_at, connected_at) values (?, ?, ?, 0, 'stream', '0.1.0', 3, ?, 5)`,
      args: [worker, gatewayId, instanceId, lastHeartbeatAt],
    },
  ])
  return worker
}

test('lists a worker with heartbeats as connected and in sync', async () => {
  await fleet.ledger.write([
    { sql: 'insert into gateway_names (id, name) values (?, ?)', args: [fleet.gatewayId, 'the shop'] },
  ])
  const began = Date.now()
  const worker = await fleet.worker('one')
  await eventually(() => worker.ready().ok)
  const { version: stateVersion } = fleet.change(() => undefined)
  await eventually(async () => (await ask()).workers[0]?.acknowledged_version === stateVersion)
  const { workers, next_cursor } = await ask()
  expect(next_cursor).toBeNull()
  expect(workers).toEqual([
    expect.objectContaining({
      gateway_id: fleet.gatewayId,
      gateway_name: 'the shop',
      worker_number: 0,
      version,
      connected: true,
      state_version: stateVersion,
      left_at: null,
    }),
  ])
  const heartbeat = Date.parse(workers[0]?.last_heartbeat_at ?? '')
  expect(heartbeat).toBeGreaterThanOrEqual(began - 1)
  expect(Date.parse(workers[0]?.serves_until ?? '') - heartbeat).toBe(300_000)
})

test('lists a silent worker as not connected, and one without any heartbeat as not serving', async () => {
  const silent = await keepWorker(fleet.gatewayId, Date.now() - 60_000)
  const mute = await keepWorker(fleet.gatewayId, 0)
  const { workers } = await ask()
  const of = (name: string) => workers.find(({ worker }) => worker === name)
  expect(of(silent)).toMatchObject({ connected: false, acknowledged_version: 3, version: '0.1.0' })
  expect(of(mute)).toMatchObject({ connected: false, last_heartbeat_at: null, serves_until: null })
})

test('leaves released workers out and filters by gateway', async () => {
  const other = newId()
  const kept = await keepWorker(other, 1)
  const released = await keepWorker(other, 1)
  await keepWorker(fleet.gatewayId, 1)
  await fleet.ledger.write([{ sql: 'update workers set released_at = 2 where worker = ?', args: [released] }])
  expect((await ask({ gateway_id: other })).workers.map(({ worker }) => worker)).toEqual([kept])
})

test('pages through each worker once', async () => {
  const made: string[] = []
  for (let count = 0; count < 5; count++) made.push(await keepWorker(fleet.gatewayId, 1))
  const seen: string[] = []
  let cursor: string | null = null
  do {
    const page = await ask({ limit: '2', ...(cursor !== null && { cursor }) })
    seen.push(...page.workers.map(({ worker }) => worker))
    cursor = page.next_cursor
  } while (cursor !== null)
  expect(seen).toEqual(made.toSorted())
})

/** `doctor` and the list of workers where a gateway keeps a copy of the state of two control planes. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { readlinkSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { gatewayWorkerSchema } from '../../src/fleet/coordinator/routes/workers.ts'
import { api, expectAnswer } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { run, temporaryDirectory } from '../support/harness.ts'
import type { ControlPlane } from './control-plane.ts'
import { type FleetUnderTest, startFleet } from './fleet.ts'
import { type Running, start } from './process.ts'

setDefaultTimeout(120_000)

const workerPage = z.object({ workers: z.array(gatewayWorkerSchema) })

let fleet: FleetUnderTest
let sidecar: Running
let listen: string
const directory = temporaryDirectory()
const data = join(directory, 'data')

beforeAll(async () => {
  fleet = await startFleet({ gateways: 0 })
  listen = `127.0.0.1:${await freePort()}`
  await begin()
}, 120_000)
afterAll(async () => {
  await sidecar?.kill()
  await fleet?.[Symbol.asyncDispose]()
  rmSync(directory, { recursive: true, force: true })
})

async function begin(): Promise<void> {
  sidecar = await start(['gateway', '--data', data], {
    SERVICE_API_URL: fleet.planes[0].baseUrl,
    SERVICE_API_TOKEN: fleet.runtimeToken,
    SERVICE_GATEWAY_LISTEN: listen,
  })
  await until('it is ready', async () => (await fetch(`http://${listen}/readyz`).catch(() => null))?.ok === true, {
    withinMs: 30_000,
  })
}

const look = () =>
  run(['doctor', '--data', data, '--gateway-listen', listen], {
    env: { SERVICE_API_URL: fleet.planes[0].baseUrl, SERVICE_API_TOKEN: fleet.runtimeToken },
  })

const workersBy = async (plane: ControlPlane) =>
  expectAnswer(await api(plane, '/v1/gateway-workers'), 200, workerPage).workers

test('finds a healthy sidecar ok, and each control plane lists it', async () => {
  const { code, stdout } = await look()
  expect([code, stdout.split('\n').filter((line) => line !== '' && !line.startsWith('ok '))]).toEqual([0, []])
  expect(stdout).toMatch(/Copy \d+ of the state is sound, at version \d+/)
  for (const plane of fleet.planes) {
    await until('it is connected', async () => (await workersBy(plane)).every(({ connected }) => connected))
    expect(await workersBy(plane)).toMatchObject([{ gateway_id: fleet.gatewayId, left_at: null }])
  }
})

test('names a replica that lacks a file while nothing runs, and a start makes it anew', async () => {
  await sidecar.kill()
  const replica = join(data, 'gateway/replica')
  rmSync(join(replica, readlinkSync(join(replica, 'current')), 'state.db-client_wal_index'))
  const { code, stdout } = await look()
  expect(code).toBe(1)
  expect(stdout).toMatch(/^warn {2}Copy \d+ of the state is damaged: state.db-client_wal_index is missing/m)
  await begin()
  expect((await look()).code).toBe(0)
})

test('a drained worker has deregistered and no longer serves', async () => {
  await sidecar.end('SIGTERM')
  await until('it has left', async () => (await workersBy(fleet.planes[1])).some(({ left_at }) => left_at !== null))
  const [worker] = await workersBy(fleet.planes[1])
  expect(worker).toMatchObject({ connected: false, serves_until: null })
})

/**
 * A sidecar of several workers: one replicator beside them, one replica that all read, and every promise of one holds.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { type ControlPlane, type Primary, startControlPlane, startPrimary } from '../fleet/control-plane.ts'
import { type FleetGateway, startFleetGateway } from '../fleet/gateway.ts'
import { revokedToken } from '../support/answers.ts'
import { createToken, expectAnswer, installation, revoke } from '../support/client.ts'
import { eventually, until } from '../support/eventually.ts'
import { childrenOf, descendantsOf, listensOn, signal } from '../support/processes.ts'

setDefaultTimeout(60_000)

let primary: Primary
let plane: ControlPlane
let sidecar: FleetGateway

beforeAll(async () => {
  primary = await startPrimary({ namespaces: true })
  plane = await startControlPlane(primary)
  const { gatewayId: gateway_id, teamId: team_id } = await installation(plane)
  const { token_value: runtimeToken } = await createToken(plane, {
    purpose: 'gateway_runtime',
    principal_type: 'gateway_runtime',
    bindings: { gateway_id, team_id },
  })
  sidecar = await startFleetGateway({
    controlPlane: plane.baseUrl,
    runtimeToken,
    environment: { SERVICE_GATEWAY_WORKERS: '2' },
  })
}, 240_000)
afterAll(async () => {
  await sidecar?.[Symbol.asyncDispose]()
  await plane?.[Symbol.asyncDispose]()
  await primary?.[Symbol.asyncDispose]()
})

const workers = (): number[] =>
  childrenOf(sidecar.running().pid()).filter((pid) => listensOn(pid, Number(new URL(sidecar.gatewayUrl).port)))

/** One request on a connection of its own, which the kernel gives to either worker; 0 where it broke. */
async function ask(token: string): Promise<number> {
  try {
    const answer = await fetch(`${sidecar.gatewayUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'simulator/echo', messages: [{ role: 'user', content: 'Hello' }] }),
      keepalive: false,
    })
    await answer.text()
    return answer.status
  } catch {
    // A worker that is killed answers nobody.
    return 0
  }
}

const askMany = (token: string, times: number): Promise<number[]> =>
  Promise.all(Array.from({ length: times }, () => ask(token)))

/** One that could not be decided on in time is sent again, as clients do. */
async function decided(token: string): Promise<number> {
  for (;;) {
    const status = await ask(token)
    if (status !== 503) return status
    await Bun.sleep(50)
  }
}

const count = (statuses: readonly number[], wanted: number): number =>
  statuses.filter((status) => status === wanted).length

/** A token that both workers have read: neither is asked for it anew by those who follow. */
async function knownToken(fields: object = {}) {
  const token = await createToken(plane, fields)
  const models = async () =>
    (
      await fetch(`${sidecar.gatewayUrl}/v1/models`, {
        headers: { authorization: `Bearer ${token.token_value}` },
        keepalive: false,
      })
    ).status
  await until('both workers know it', async () =>
    (await Promise.all(Array.from({ length: 12 }, models))).every((status) => status === 200),
  )
  return token
}

const propagation = async (id: string) => expectAnswer(await revoke(plane, id), 200, revokedToken).propagation

test('two workers share the port and one replicator and accept exactly 100 of 300 concurrent requests', async () => {
  expect(workers()).toHaveLength(2)
  const replicators = workers().map((pid) => descendantsOf(pid).length)
  expect(replicators.sort()).toEqual([0, 1])
  const { token_value: token } = await knownToken({ max_requests: 100 })
  const statuses = await Promise.all(Array.from({ length: 300 }, () => decided(token)))
  expect([count(statuses, 200), count(statuses, 429)]).toEqual([100, 200])
})

test('a revocation waits for both workers, and neither accepts the token afterwards', async () => {
  const { id, token_value: token } = await knownToken()
  expect(count(await askMany(token, 20), 200)).toBe(20)
  expect(await propagation(id)).toMatchObject({ connected: 2, acknowledged: 2, unreachable: [] })
  expect(count(await askMany(token, 40), 401)).toBe(40)
})

for (const [which, index] of [
  ['the worker that keeps the replica', 1],
  ['the other worker', 0],
] as const) {
  test(`the limit holds while ${which} is killed, the sibling serves, and both return`, async () => {
    const { token_value: token } = await knownToken({ max_requests: 100 })
    const { token_value: free } = await knownToken()
    const victim = workers().find((pid) => descendantsOf(pid).length === index) ?? 0
    const statuses = askMany(token, 200)
    await Bun.sleep(10)
    signal(victim, 'SIGKILL')
    expect(count(await statuses, 200)).toBeLessThanOrEqual(100)
    await until('the sibling answers', async () => (await ask(free)) === 200)
    const acknowledged = () => eventually(async () => propagation((await createToken(plane)).id))
    await until('both are connected', async () => workers().length === 2 && (await acknowledged()).acknowledged === 2, {
      withinMs: 30_000,
    })
    const { id, token_value: next } = await knownToken()
    expect(await propagation(id)).toMatchObject({ acknowledged: 2, unreachable: [] })
    expect(count(await askMany(next, 20), 401)).toBe(20)
  })
}

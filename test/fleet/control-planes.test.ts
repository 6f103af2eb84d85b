/** Two control planes on one primary, with gateways at each: what holds through signals, kills and hangs. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { recordedChains } from '../../src/events/testing/recorded.ts'
import { createdToken, revokedToken, tokenPage } from '../support/answers.ts'
import { api, chat, createToken, expectAnswer, revoke } from '../support/client.ts'
import { eventually, until } from '../support/eventually.ts'
import type { ControlPlane } from './control-plane.ts'
import { acceptedToken, type FleetUnderTest, startFleet } from './fleet.ts'
import type { FleetGateway } from './gateway.ts'

setDefaultTimeout(120_000)

const staleSeconds = 5
const gatewayPage = z.object({ gateways: z.array(z.object({ id: z.string() })) })

let fleet: FleetUnderTest

beforeAll(async () => {
  fleet = await startFleet({ gateways: 4, environment: { SERVICE_MAX_STALENESS_SECONDS: String(staleSeconds) } })
}, 240_000)
afterAll(async () => {
  await fleet?.[Symbol.asyncDispose]()
})

const say = async (gateway: FleetGateway, token: string): Promise<number> => {
  const answer = await chat(gateway, { token, model: 'simulator/echo' })
  await answer.arrayBuffer()
  return answer.status
}

const sayAll = (token: string): Promise<number[]> =>
  Promise.all(fleet.gateways.slice(0, 4).map((gateway) => say(gateway, token)))

const planeOf = (index: number): ControlPlane => fleet.planes[index % 2 === 0 ? 0 : 1]

/** One that is connected there. */
function gatewayOf(plane: ControlPlane): FleetGateway {
  const found = fleet.gateways[fleet.planes.indexOf(plane)]
  if (found === undefined) throw new Error('The fleet has no gateway there')
  return found
}

const head = async (): Promise<{ version: number; nonce: string }> => {
  const [row] = await fleet.primary.read('state', 'select version, nonce from state_head')
  return z.object({ version: z.number(), nonce: z.string() }).parse(row)
}

test('two first starts at once make one organization, one gateway and one administrator', async () => {
  const [first, second] = fleet.planes
  const tokens = expectAnswer(await api(second, '/v1/tokens'), 200, tokenPage).tokens.map(({ name }) => name)
  expect(tokens.filter((name) => name === 'administrator' || name === 'local gateway').length).toBe(2)
  expect(expectAnswer(await api(first, '/v1/gateways'), 200, gatewayPage).gateways.length).toBe(1)
  expect((await api(first, '/v1/users')).body).toEqual((await api(second, '/v1/users')).body)
})

test('a revocation at either control plane is in force at every gateway when it is answered', async () => {
  for (let round = 0; round < 6; round++) {
    const token = await acceptedToken(fleet, say)
    const { propagation } = expectAnswer(await revoke(planeOf(round), token.id), 200, revokedToken)
    expect(propagation).toMatchObject({ connected: 4, acknowledged: 4, unreachable: [] })
    expect(await sayAll(token.token_value)).toEqual([401, 401, 401, 401])
  }
})

test('one of two rotations, or of two changes of one version, at both control planes succeeds and the other is refused', async () => {
  for (let round = 0; round < 5; round++) {
    const token = await createToken(fleet.planes[0])
    const rotations = await Promise.all(
      fleet.planes.map((plane) => api(plane, `/v1/tokens/${token.id}/rotate`, { method: 'POST', body: {} })),
    )
    expect(rotations.map(({ status }) => status).sort()).toEqual([201, 409])
    const other = await api(fleet.planes[0], '/v1/tokens', { body: { name: 'shared', purpose: 'general' } })
    const { id } = createdToken.parse(other.body)
    const edits = await Promise.all(
      fleet.planes.map((plane, index) =>
        api(plane, `/v1/tokens/${id}`, {
          method: 'PATCH',
          headers: { 'if-match': other.headers.get('etag') ?? '' },
          body: { bindings: { model_filter: [`model-${index}`] } },
        }),
      ),
    )
    expect(edits.filter(({ status }) => status === 200).length).toBe(1)
    expect(edits.filter(({ status }) => status === 409 || status === 412).length).toBe(1)
  }
})

test('concurrent changes at both control planes each get a version of their own and one place in the chain', async () => {
  const before = await head()
  const name = 'made at once'
  // On a busy machine a write may wait for longer than its caller does, who is refused and asks again; it may be made.
  const create = (plane: ControlPlane) => eventually(() => createToken(plane, { name }))
  const made = await Promise.all(Array.from({ length: 40 }, (_, index) => create(planeOf(index))))
  expect(new Set(made.map(({ id }) => id)).size).toBe(40)
  const pending = () => fleet.primary.read('ledger', 'select 1 from pending_changes')
  await until('what was refused and made is recorded as well', async () => (await pending()).length === 0)
  const { version, nonce } = await head()
  const log = await fleet.primary.read('state', 'select version, event_id from change_log where version > ?', [
    before.version,
  ])
  expect(new Set(log.map((row) => row.version)).size).toBe(version - before.version)
  expect(log.find((row) => row.version === version)?.event_id).toBe(nonce)
  const listed = expectAnswer(await api(fleet.planes[0], `/v1/tokens?name=${name}&limit=100`), 200, tokenPage)
  expect(version - before.version).toBe(listed.tokens.length)
  const own = (await recordedChains(fleet.primary.log)).filter(({ chain }) => chain === 'control-plane')
  expect(own.map(({ seq }) => seq)).toEqual(own.map((_, index) => index + 1))
})

test('one Idempotency-Key at both control planes at once makes one record', async () => {
  const ask = (plane: ControlPlane) =>
    api(plane, '/v1/teams', { body: { name: 'once' }, headers: { 'idempotency-key': 'the-same' } })
  const answers = await Promise.all(fleet.planes.map(ask))
  expect(answers.filter(({ status }) => status === 201).length).toBeGreaterThanOrEqual(1)
  expect(answers.every(({ status }) => status === 201 || status === 409)).toBe(true)
  const teams = await fleet.primary.read('ledger', "select id from teams where name = 'once'")
  expect(teams.length).toBe(1)
  expect((await ask(fleet.planes[1])).headers.get('idempotency-replayed')).toBe('true')
})

/**
 * This many concurrent requests, spread over gateways of both control planes. One that could not be decided is sent
 * again.
 */
const sayMany = (token: string, times: number): Promise<{ status: number; tokens: number }[]> =>
  Promise.all(
    Array.from({ length: times }, async (_, index) => {
      const gateway = fleet.gateways[index % 4]
      if (gateway === undefined) throw new RangeError('The fleet has four gateways')
      for (;;) {
        const answer = await chat(gateway, { token, model: 'simulator/echo' })
        const body: unknown = await answer.json()
        const { status } = answer
        if (status !== 503) return { status, tokens: status === 200 ? paid.parse(body).usage.total_tokens : 0 }
        await Bun.sleep(100)
      }
    }),
  )
const paid = z.object({ usage: z.object({ total_tokens: z.number() }) })

test('a limit of 100 lets exactly 100 of 500 concurrent requests over gateways of both control planes through', async () => {
  for (let round = 0; round < 3; round++) {
    const { token_value: token } = await createToken(planeOf(round), { max_requests: 100 })
    await until('all gateways know it', async () => (await statusesOfModels(token)).every((status) => status === 200))
    const statuses = (await sayMany(token, 500)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 200).length).toBe(100)
    expect(statuses.filter((status) => status === 429).length).toBe(400)
  }
})

test('a budget pays no more than it has for 500 concurrent requests over gateways of both control planes', async () => {
  const budget = 0.002
  const { id, token_value: token } = await createToken(planeOf(1), { max_budget: budget })
  await until('all gateways know it', async () => (await statusesOfModels(token)).every((status) => status === 200))
  const answers = await sayMany(token, 500)
  const spent = answers.reduce((sum, { tokens }) => sum + tokens, 0) / 1e6
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 402]))
  expect(spent).toBeLessThanOrEqual(budget)
  await until('all that was answered is booked', async () => {
    const { body } = await api(planeOf(0), `/v1/tokens/${id}`)
    return Math.abs(withSpend.parse(body).depletion.current_spend - spent) < 1e-9
  })
})
const withSpend = z.object({ depletion: z.object({ current_spend: z.number() }) })

/** What a list of models, which costs nothing, is answered with everywhere. */
const statusesOfModels = (token: string): Promise<number[]> =>
  Promise.all(
    fleet.gateways.slice(0, 4).map(async ({ gatewayUrl }) => {
      const answer = await fetch(`${gatewayUrl}/v1/models`, { headers: { authorization: `Bearer ${token}` } })
      await answer.arrayBuffer()
      return answer.status
    }),
  )

test('a control plane that is killed while it revokes leaves the token usable by nobody', async () => {
  for (let round = 0; round < 2; round++) {
    const token = await acceptedToken(fleet, say)
    const [first, second] = fleet.planes
    const asked = revoke(first, token.id).catch(() => null)
    await Bun.sleep(round * 15)
    await first.kill()
    await asked
    const { propagation } = expectAnswer(await revoke(second, token.id), 200, revokedToken)
    const effective = Math.max(0, Date.parse(propagation.effective_by) - Date.now())
    // Gateways of the one that is gone have their time; those of the other have none.
    expect(await say(gatewayOf(second), token.token_value)).toBe(401)
    expect(effective).toBeLessThanOrEqual(staleSeconds * 1000 + 5000)
    await first.restart()
    await until('every gateway refuses it', async () => (await sayAll(token.token_value)).every((code) => code === 401))
    await until('all gateways are connected again', async () => {
      const { id } = await createToken(first)
      const again = expectAnswer(await revoke(first, id), 200, revokedToken)
      return again.propagation.acknowledged === 4
    })
  }
  const pending = () => fleet.primary.read('ledger', 'select 1 from pending_changes')
  await until('what was interrupted is settled', async () => (await pending()).length === 0, { withinMs: 60_000 })
})

test('a revocation does not wait for a stopped gateway, and names a killed one as unreachable', async () => {
  const [first, second] = fleet.planes
  const [leaving, dying] = [await fleet.add(second), await fleet.add(second)]
  await leaving.stop()
  const one = expectAnswer(await revoke(first, (await createToken(first)).id), 200, revokedToken)
  expect(one.propagation).toMatchObject({ connected: 5, acknowledged: 5, unreachable: [] })
  await dying.running().kill()
  const other = expectAnswer(await revoke(first, (await createToken(first)).id), 200, revokedToken)
  expect(other.propagation).toMatchObject({ connected: 5, acknowledged: 4 })
  expect(other.propagation.unreachable.length).toBe(1)
  expect(Date.parse(other.propagation.effective_by)).toBeGreaterThan(Date.now())
})

test('no restart makes the ledger look restored, and grants go on although a gateway is gone for good', async () => {
  const gone = await fleet.add(fleet.planes[0])
  await gone.running().kill()
  const signed = () => fleet.primary.read('state', 'select 1 from checkpoints where number > 0')
  await until('a checkpoint was signed', async () => (await signed()).length === 1)
  for (const plane of fleet.planes) {
    await plane.running().end('SIGTERM')
    await plane.restart()
    expect(plane.running().stderr()).not.toContain('The ledger was restored')
  }
  expect(await fleet.primary.read('ledger', 'select 1 from workers where pending_reconciliation = 1')).toEqual([])
  const { token_value: limited } = await createToken(fleet.planes[0], { max_requests: 1000 })
  await until('every gateway serves it', async () => (await sayAll(limited)).every((status) => status === 200))
})

test('a worker whose instance connects elsewhere is fenced at the first control plane', async () => {
  const [first] = fleet.planes
  const gateway = await fleet.add(first)
  const code = gateway.running().exited
  await gateway.twin(fleet.planes[1])
  expect(await code).toBe(1)
})

test('a control plane that no signal reaches finds the revocations in the state', async () => {
  await using deaf = await startFleet({ gateways: 2, environment: { SERVICE_PEER_URL: 'http://127.0.0.1:1' } })
  const token = await acceptedToken(deaf, say)
  const { propagation } = expectAnswer(await revoke(deaf.planes[0], token.id), 200, revokedToken)
  expect(propagation).toMatchObject({ connected: 2, acknowledged: 2, unreachable: [] })
  expect(await Promise.all(deaf.gateways.map((gateway) => say(gateway, token.token_value)))).toEqual([401, 401])
})

/**
 * What a control plane does when its primary hangs, dies, is restored from an older copy, or is emptied. Each test has a
 * primary and a control plane of its own, so they run side by side.
 */
import { beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { createClient } from '@libsql/client/http'
import { recordedEvents } from '../../src/events/testing/recorded.ts'
import { createdToken, errorAnswer, revokedToken } from '../support/answers.ts'
import { api, chat, createToken, expectAnswer, installation, revoke } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { executable } from '../support/executable.ts'
import { type ControlPlane, type Primary, startControlPlane, startPrimary } from './control-plane.ts'
import { startFleetGateway } from './gateway.ts'
import { connectWorker } from './worker.ts'

setDefaultTimeout(120_000)

beforeAll(async () => {
  await executable()
}, 240_000)

interface Case extends AsyncDisposable {
  primary: Primary
  plane: ControlPlane
}

async function startCase(): Promise<Case> {
  const primary = await startPrimary()
  const plane = await startControlPlane(primary).catch(async (error: unknown) => {
    await primary[Symbol.asyncDispose]()
    throw error
  })
  return {
    primary,
    plane,
    async [Symbol.asyncDispose]() {
      await plane[Symbol.asyncDispose]()
      await primary[Symbol.asyncDispose]()
    },
  }
}

const revokedAt = async ({ primary }: Case, id: string): Promise<unknown> =>
  (await primary.read('state', 'select revoked_at from tokens where id = ?', [id]))[0]?.revoked_at

/** The token of a gateway of the installation. */
async function runtimeToken({ plane }: Case): Promise<string> {
  const { gatewayId, teamId } = await installation(plane)
  const body = {
    name: 'gateway',
    purpose: 'gateway_runtime',
    principal_type: 'gateway_runtime',
    bindings: { gateway_id: gatewayId, team_id: teamId },
  }
  return expectAnswer(await api(plane, '/v1/tokens', { body }), 201, createdToken).token_value
}

const unavailable = async ({ plane }: Case): Promise<void> => {
  const answers = await Promise.all([api(plane, '/v1/tokens'), api(plane, '/v1/tokens', { body: tokenBody })])
  for (const answer of answers) {
    expect(expectAnswer(answer, 503, errorAnswer).error).toMatchObject({
      type: 'service_unavailable',
      code: 'dependency_unavailable',
    })
  }
  expect((await fetch(`${plane.baseUrl}/healthz`)).status).toBe(200)
}
const tokenBody = { name: 'while it is away', purpose: 'general' }

for (const which of ['state', 'ledger'] as const) {
  test.concurrent(`calls end with 503 while the ${which} server hangs, and go on when it answers`, async () => {
    await using started = await startCase()
    const { primary, plane } = started
    primary[which].freeze()
    try {
      await unavailable(started)
    } finally {
      primary[which].thaw()
    }
    await until('it answers again', async () => (await api(plane, '/v1/tokens')).status === 200)
    const token = await createToken(plane)
    expectAnswer(await revoke(plane, token.id), 200, revokedToken)
  })

  test.concurrent(`calls end with 503 while the ${which} server is down, and go on when it is back`, async () => {
    await using started = await startCase()
    const { primary, plane } = started
    await primary[which].kill()
    await unavailable(started)
    await primary[which].restart()
    await until('it answers again', async () => (await api(plane, '/v1/tokens')).status === 200)
    const token = await createToken(plane)
    expectAnswer(await revoke(plane, token.id), 200, revokedToken)
    await until('nothing is left pending', async () => {
      return (await primary.read('ledger', 'select 1 from pending_changes')).length === 0
    })
  })
}

test.concurrent('gateways serve tokens with limits, used before or not, while the state server hangs', async () => {
  await using started = await startCase()
  const { primary, plane } = started
  await using gateway = await startFleetGateway({
    controlPlane: plane.baseUrl,
    runtimeToken: await runtimeToken(started),
  })
  const limits = [{ max_requests: 100_000 }, { max_budget: 5 }, { rate_limit_rpm: 1000 }]
  const make = () => Promise.all(limits.map((fields) => createToken(plane, fields)))
  const [used, unused] = [await make(), await make()]
  const free = await createToken(plane)
  const ask = async ({ token_value: token }: { token_value: string }) => {
    const answer = await chat(gateway, { token, model: 'simulator/echo' })
    await answer.arrayBuffer()
    return answer.status
  }
  for (const token of [...used, free]) await until('it is served', async () => (await ask(token)) === 200)
  // The limits of before hold after a change that has just been made, too.
  await createToken(plane)
  primary.state.freeze()
  const refused: string[] = []
  try {
    const end = Date.now() + 12_000
    while (Date.now() < end) {
      for (const [index, token] of [...used, ...unused].entries()) {
        const status = await ask(token)
        if (status !== 200) refused.push(`${index}: ${status}`)
      }
      await Bun.sleep(300)
    }
  } finally {
    primary.state.thaw()
  }
  expect(refused).toEqual([])
})

test.concurrent('a state restored from an older copy accepts no token that the ledger knows to have ended', async () => {
  await using started = await startCase()
  const { primary, plane } = started
  const [one, other, kept] = [await createToken(plane), await createToken(plane), await createToken(plane)]
  const copy = await primary.state.copy()
  expectAnswer(await revoke(plane, one.id), 200, revokedToken)
  expect((await api(plane, `/v1/tokens/${other.id}/rotate`, { method: 'POST', body: {} })).status).toBe(201)
  await primary.state.restore(copy)
  await until('both are revoked again', async () => {
    return Number.isInteger(await revokedAt(started, one.id)) && Number.isInteger(await revokedAt(started, other.id))
  })
  expect(await revokedAt(started, kept.id)).toBeNull()
  const events = (await recordedEvents(primary.log)).filter(({ reason_code }) => reason_code === 'state.restored')
  expect(events.map(({ event_attribution: { token_id } }) => token_id).sort()).toEqual([one.id, other.id].sort())
})

test.concurrent('a state restored while no control plane runs accepts no token that has ended', async () => {
  await using started = await startCase()
  const { primary, plane } = started
  const token = await createToken(plane)
  const copy = await primary.state.copy()
  expectAnswer(await revoke(plane, token.id), 200, revokedToken)
  await plane.kill()
  await primary.state.restore(copy)
  await plane.restart()
  expect(await revokedAt(started, token.id)).toBeInteger()
})

test.concurrent('a ledger restored alone has the newer tokens within seconds, and they can be revoked', async () => {
  await using started = await startCase()
  const { primary, plane } = started
  const copy = await primary.ledger.copy()
  const token = await createToken(plane)
  await primary.ledger.restore(copy)
  const asked = async () => (await api(plane, `/v1/tokens/${token.id}`)).status === 200
  await until('the ledger has taken it over', asked)
  expectAnswer(await revoke(plane, token.id), 200, revokedToken)
  expect(await revokedAt(started, token.id)).toBeInteger()
})

test.concurrent('when both databases are restored, tokens that workers refuse are revoked again', async () => {
  await using started = await startCase()
  const { primary, plane } = started
  const token = await createToken(plane)
  const other = await createToken(plane)
  const { gatewayId, teamId } = await installation(plane)
  const worker = await connectWorker(plane, { gatewayId, teamId })
  const copies = [await primary.state.copy(), await primary.ledger.copy()] as const
  await until('the worker is back', () => worker.connected())
  expectAnswer(await revoke(plane, token.id), 200, revokedToken)
  await until('the worker has heard', () => worker.revocations.length > 0)
  const before = worker.head()
  expect(await worker.heartbeat(before)).toMatchObject({ history: 'known' })
  await plane.kill()
  await primary.state.restore(copies[0])
  await primary.ledger.restore(copies[1])
  await plane.restart()
  expect(await revokedAt(started, token.id)).toBeNull()
  await until('the worker is back', () => worker.connected())
  expect(await worker.heartbeat(before)).toMatchObject({ history: 'unknown', fresh: false })
  expect(await worker.reportRevocations(before.history)).toMatchObject({ revoked: 1 })
  expect(await worker.reportRevocations(before.history)).toMatchObject({ revoked: 0 })
  expect([await revokedAt(started, token.id), await revokedAt(started, other.id)]).toEqual([expect.any(Number), null])
  await worker.close()
})

test.concurrent("two databases may be namespaces of one server, and the gateways' credential reads the state only", async () => {
  await using shared = await startPrimary({ namespaces: true })
  await using namespaced = await startControlPlane(shared)
  const worker = await connectWorker(namespaced, await installation(namespaced))
  const { url, token, expires_at } = await worker.renewCredential()
  await worker.close()
  expect(Date.parse(expires_at) - Date.now()).toBeWithin(9 * 60_000, 10 * 60_000 + 1)
  const state = createClient({ url, authToken: token })
  expect((await state.execute('select id from tokens')).rows.length).toBeGreaterThan(0)
  await expect(state.batch(['delete from tokens'], 'write')).rejects.toThrow('403')
  const ledger = createClient({ url: shared.state.urlOf('ledger'), authToken: token })
  await expect(ledger.execute('select id from users')).rejects.toThrow('404')
})

test.concurrent('refuses at the start a gateway credential that opens the ledger too', async () => {
  await using shared = await startPrimary({ namespaces: true })
  const environment = { SERVICE_STATE_SIGNING_KEY_FILE: '', SERVICE_STATE_READ_TOKEN: shared.state.token }
  await expect(startControlPlane(shared, environment)).rejects.toThrow('opens the ledger too')
})

test.concurrent('a control plane without the right master key does not start', async () => {
  await using started = await startCase()
  const { primary } = started
  await expect(startControlPlane(primary, { SERVICE_MASTER_KEY: '' })).rejects.toThrow(
    'needs the same SERVICE_MASTER_KEY',
  )
  const other = Buffer.alloc(32, 7).toString('base64')
  await expect(startControlPlane(primary, { SERVICE_MASTER_KEY: other })).rejects.toThrow(
    'SERVICE_MASTER_KEY does not open the secrets of this ledger',
  )
  await expect(startControlPlane(primary, { SERVICE_STATE_URL: 'http://db.example.com' })).rejects.toThrow(
    'must be reached over https',
  )
})

test.concurrent('treats an emptied state as unavailable, not as one without tokens, and does not start anew', async () => {
  await using started = await startCase()
  const { primary, plane } = started
  await primary.state.wipe()
  await unavailable(started)
  await expect(plane.restart()).rejects.toThrow('The state database is empty')
})

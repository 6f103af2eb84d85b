/** Alerts with two control planes on one primary: each thing is told once, also when the one that evaluates is killed. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { type Receiver, webhookReceiver } from '../fakes/notice-receivers.ts'
import { api, chat, createToken } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type FleetUnderTest, startFleet } from './fleet.ts'

setDefaultTimeout(180_000)

const secret = `whsec_${Buffer.from('a key of thirty-two bytes, 32 of them').toString('base64')}`
let fleet: FleetUnderTest
let receiver: Receiver
beforeAll(async () => {
  fleet = await startFleet({
    gateways: 2,
    environment: { SERVICE_ALERT_INTERVAL_SECONDS: '1', SERVICE_WEBHOOK_ADDRESSES: 'any' },
  })
  receiver = webhookReceiver(secret)
  const body = { name: 'Hook', kind: 'webhook', url: receiver.url, signing_secret: secret }
  expect((await api(fleet.planes[0], '/v1/alert-channels', { body })).status).toBe(201)
}, 240_000)
afterAll(async () => {
  receiver?.stop()
  await fleet?.[Symbol.asyncDispose]()
})

/** Waits until alerts were evaluated some times more: each time the lease grows. */
async function evaluations(count: number): Promise<void> {
  const until = async () => (await fleet.primary.read('ledger', 'select until from alert_lease'))[0]?.until
  for (let seen = 0; seen < count; seen += 1) {
    const before = await until()
    await eventually(async () => expect(await until()).not.toEqual(before), { withinMs: 30_000 })
  }
}

const toldOf = (name: string) => receiver.received.filter(({ body }) => JSON.stringify(body.data).includes(`"${name}"`))

async function refuse(): Promise<void> {
  const { token_value: token } = await createToken(fleet.planes[0])
  for (let index = 0; index < 30; index += 1) {
    const gateway = fleet.gateways[index % 2]
    if (gateway === undefined) throw new Error('The fleet has no gateway there')
    await (await chat(gateway, { token, model: 'no/such-model' })).text()
  }
}

test('two control planes tell of refused requests once', async () => {
  await refuse()
  await eventually(() => expect(toldOf('Many requests are refused')).toHaveLength(1), { withinMs: 60_000 })
  await evaluations(5)
  expect(toldOf('Many requests are refused')).toHaveLength(1)
  expect(await fleet.primary.read('ledger', 'select holder from alert_lease')).toHaveLength(1)
})

test('when the control plane that evaluates is killed, the other one goes on and tells nothing twice', async () => {
  const body = { name: 'Any refusal', condition: 'refusals', thresholds: [1], at_least: 1 }
  const killed = fleet.planes[0]
  await killed.kill()
  expect((await api(fleet.planes[1], '/v1/alerts', { body })).status).toBe(201)
  await eventually(() => expect(toldOf('Any refusal').length).toBeGreaterThan(0), { withinMs: 90_000 })
  await killed.restart()
  await evaluations(5)
  expect(new Set(toldOf('Any refusal').map(({ id }) => id)).size).toBe(1)
  expect(toldOf('Many requests are refused')).toHaveLength(1)
})

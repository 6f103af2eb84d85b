/** Alerts of the real executable: without configuration, through kills of the control plane, and by a real mail server. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { authority } from '../../src/lib/testing/certificate.ts'
import { type MailServer, mailServer } from '../fakes/mail-server.ts'
import { type Receiver, webhookReceiver } from '../fakes/notice-receivers.ts'
import { api, chat, createToken, expectAnswer } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type Gatehouse, startGatehouse, temporaryDirectory } from '../support/harness.ts'

setDefaultTimeout(180_000)

const secret = `whsec_${Buffer.from('a key of thirty-two bytes, 32 of them').toString('base64')}`
let gatehouse: Gatehouse
let receiver: Receiver
let mail: MailServer
beforeAll(async () => {
  const trusted = join(temporaryDirectory(), 'authority.pem')
  writeFileSync(trusted, authority)
  gatehouse = await startGatehouse({
    env: {
      ...{ SERVICE_WEBHOOK_ADDRESSES: 'any', SERVICE_ALERT_INTERVAL_SECONDS: '1', NODE_EXTRA_CA_CERTS: trusted },
    },
  })
  receiver = webhookReceiver(secret)
  mail = await mailServer({ password: 'hunter2' })
})
afterAll(async () => {
  await gatehouse?.stop()
  receiver?.stop()
  await mail?.stop()
})

const madeSchema = z.looseObject({ id: z.string() })
const noticeSchema = z.looseObject({ id: z.string(), channel: z.string(), kind: z.string(), state: z.string() })
const historySchema = z.looseObject({
  alert_firings: z.array(
    z.looseObject({ alert: z.string(), about: z.string(), severity: z.string(), notices: z.array(noticeSchema) }),
  ),
})

const make = async (path: string, body: unknown) =>
  expectAnswer(await api(gatehouse, path, { body }), 201, madeSchema).id
const history = async (query = '') =>
  expectAnswer(await api(gatehouse, `/v1/alert-firings${query}`), 200, historySchema).alert_firings
const open = () => history('?state=open')

const refuseRequests = async (count: number) => {
  const { token_value: token } = await createToken(gatehouse)
  await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const answer = await chat(gatehouse, {
        token,
        model: 'no/such-model',
        text: 'hello',
        requestId: `refused-${index}`,
      })
      await answer.text()
      expect(answer.status).toBeGreaterThanOrEqual(400)
    }),
  )
}

test('a new installation notices that requests are refused, without any configuration', async () => {
  await refuseRequests(25)
  await eventually(async () => {
    expect(await open()).toMatchObject([{ alert: 'Many requests are refused', severity: 'critical', notices: [] }])
  })
  const [firing] = await open()
  expect(firing?.about).toMatch(/^25 of 25 requests were refused within 10 minutes \(100 %\): 25 [a-z_.]+\.$/)
})

test('a mail server gets the notice over TLS that it offers, after sign-in', async () => {
  const id = await make('/v1/alert-channels', {
    ...{ name: 'Mail', kind: 'email', smtp_host: 'localhost', smtp_port: mail.port, smtp_username: 'gatehouse' },
    ...{ smtp_password: 'hunter2', mail_from: 'gatehouse@example.com', mail_to: ['ops@example.com'] },
  })
  const tested = await api(gatehouse, `/v1/alert-channels/${id}/test`, { body: {} })
  expect(tested.body).toEqual({ delivered: true, error: null })
  expect(mail.mails).toMatchObject([{ user: 'gatehouse', encrypted: true, to: ['ops@example.com'] }])
  await api(gatehouse, `/v1/alert-channels/${id}`, { method: 'DELETE' })
})

test('a notice that was on its way when the control plane was killed arrives, once more with the same id', async () => {
  // The receiver has taken it and does not answer: nobody can know whether it arrived.
  receiver.answer = () => new Promise<Response>(() => undefined)
  await make('/v1/alert-channels', { name: 'Hook', kind: 'webhook', url: receiver.url, signing_secret: secret })
  await make('/v1/alerts', { name: 'Any refusal', condition: 'refusals', thresholds: [1], at_least: 1 })
  await eventually(() => expect(receiver.received).toHaveLength(1), { withinMs: 30_000 })
  process.kill(gatehouse.controlPlanePid(), 'SIGKILL')
  receiver.answer = null
  await eventually(() => expect(receiver.received.length).toBeGreaterThan(1), { withinMs: 120_000 })
  const [first, second] = receiver.received
  expect(second?.id).toBe(first?.id)
  expect(second?.body).toEqual(first?.body ?? {})
  await eventually(async () => {
    const [firing] = (await open()).filter(({ alert }) => alert === 'Any refusal')
    expect(firing?.notices).toMatchObject([{ id: first?.id, channel: 'Hook', kind: 'fired', state: 'sent' }])
  })
  expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(1)
})

test('what fired before the control plane was killed is sent after it, and fires only once', async () => {
  receiver.received.length = 0
  receiver.answer = () => new Response(null, { status: 503 })
  await make('/v1/alerts', { name: 'Refusals again', condition: 'refusals', thresholds: [2], at_least: 1 })
  await eventually(async () => {
    expect((await open()).filter(({ alert }) => alert === 'Refusals again')).toHaveLength(1)
  })
  process.kill(gatehouse.controlPlanePid(), 'SIGKILL')
  receiver.answer = null
  await eventually(
    () => {
      const told = receiver.received.filter(({ body }) => JSON.stringify(body).includes('Refusals again'))
      expect(told.length).toBeGreaterThan(0)
    },
    { withinMs: 120_000 },
  )
  await eventually(async () => {
    const [firing, ...more] = (await history()).filter(({ alert }) => alert === 'Refusals again')
    expect([firing?.notices.map(({ state }) => state), more]).toEqual([['sent'], []])
  })
  const ids = receiver.received
    .filter(({ body }) => JSON.stringify(body).includes('Refusals again'))
    .map(({ id }) => id)
  expect(new Set(ids).size).toBe(1)
})

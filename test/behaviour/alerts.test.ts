/** Alerts of the real executable: without configuration, through kills of the control plane, and by a real mail server. */
import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { authority } from '../../src/lib/testing/certificate.ts'
import { type MailServer, mailServer } from '../fakes/mail-server.ts'
import { type Receiver, webhookReceiver } from '../fakes/notice-receivers.ts'
import { api, chat, createToken, expectAnswer } from '../support/client.ts'
import { eventually, until } from '../support/eventually.ts'
import { type Gatehouse, operate, startGatehouse, temporaryDirectory } from '../support/harness.ts'

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
      SERVICE_VERIFY_INTERVAL_SECONDS: '1',
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
const sinkSchema = z.looseObject({ state: z.string() })
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
  expect(firing?.about).toMatch(
    /^25 of 25 requests were refused within 10 minutes \(100 %\)\. Reasons: [^;]+ \(25, [a-z_.]+\)\.$/,
  )
})

/** Runs SQL on the ledger's file beside the control plane, as somebody who can write it might. Gives the number of rows. */
function alterLedger(sql: string): number {
  using ledger = new Database(join(gatehouse.dataDirectory, 'ledger.db'))
  ledger.run('pragma busy_timeout = 10000')
  return ledger.run(sql).changes
}

const metrics = async () => await (await fetch(`${gatehouse.baseUrl}/metrics`)).text()

test('a record that was altered is found without anybody asking, and the alert is over once a verification finds it no more', async () => {
  const isOpen = async () => (await open()).some(({ alert }) => alert === 'The record does not verify')
  await until('a verification has ended', async () =>
    /gatehouse_verify_examined_timestamp_seconds [1-9]/.test(await metrics()),
  )
  const alter = () => alterLedger("update checkpoints set body = body || ' '") > 0
  await until('a checkpoint is altered', alter, { withinMs: 90_000 })
  await until('the alert is open', isOpen, { withinMs: 60_000 })
  expect(await metrics()).toContain('gatehouse_verify_findings{what="checkpoint.altered"} 1')
  const [firing] = (await open()).filter(({ alert }) => alert === 'The record does not verify')
  expect(firing).toMatchObject({ severity: 'critical', about: expect.stringContaining('A checkpoint differs') })
  alterLedger('update checkpoints set body = trim(body)')
  expect(await operate(gatehouse, 'events', 'verify')).toMatchObject({ code: 0 })
  await until('the alert is over', async () => !(await isOpen()), { withinMs: 60_000 })
  expect(await metrics()).not.toContain('gatehouse_verify_findings{')
})

test('a sink whose receiver is gone is told by its lag, and told again when it has caught up', async () => {
  const received: string[] = []
  const serve = (port: number) =>
    Bun.serve({
      port,
      hostname: '127.0.0.1',
      async fetch(request) {
        received.push(Buffer.from(Bun.gunzipSync(await request.arrayBuffer())).toString())
        return new Response()
      },
    })
  const former = serve(0)
  const { port = 0 } = former
  await former.stop(true)
  const sinkId = await make('/v1/sinks', { name: 'siem', kind: 'http', url: `http://127.0.0.1:${port}/in` })
  await until('a delivery has failed', async () => {
    const { body } = await api(gatehouse, `/v1/sinks/${sinkId}`)
    return sinkSchema.parse(body).state === 'failing'
  })
  const id = await make('/v1/alerts', {
    name: 'Siem lags',
    condition: 'sink_lag',
    thresholds: [2],
    severity: 'critical',
  })
  const firings = async () => (await history()).filter(({ alert }) => alert === 'Siem lags')
  await until('the lag is told', async () => (await firings()).length === 1, { withinMs: 60_000 })
  expect((await firings())[0]?.about).toMatch(/The sink siem has \d+ records to deliver, .* its receiver does not take/)
  const measured = await operate(gatehouse, 'alert', 'test', id)
  expect([measured.code, measured.stdout]).toEqual([0, expect.stringContaining('The sink siem has')])
  const receiver = serve(port)
  await until('it is over', async () => (await history('?state=resolved')).some(({ alert }) => alert === 'Siem lags'), {
    withinMs: 120_000,
  })
  expect(received.length).toBeGreaterThan(0)
  await receiver.stop(true)
  const told = await operate(gatehouse, 'alert', 'history', '--state', 'resolved')
  expect([told.code, told.stdout]).toEqual([0, expect.stringContaining('Siem lags')])
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

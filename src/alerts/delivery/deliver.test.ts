import { afterEach, beforeEach, expect, test } from 'bun:test'
import { type MailServer, mailServer } from '../../../test/fakes/mail-server.ts'
import {
  pagerDutyReceiver,
  type Receiver,
  slackReceiver,
  teamsReceiver,
  webhookReceiver,
} from '../../../test/fakes/notice-receivers.ts'
import { evaluateAlerts } from '../evaluate.ts'
import { type AlertInstallation, alertInstallation } from '../testing/alert-installation.ts'
import { deliverNotices, toolsOf } from './deliver.ts'

const secret = `whsec_${Buffer.from('a key of thirty-two bytes, 32 of them').toString('base64')}`
/** A name that a caller chose, with what each receiver takes for markup. */
const hostile = '<!channel> <https://evil.example|click> [click](https://evil.example) *a* & "b"\u202e'

let made: AlertInstallation
let stops: (() => unknown)[] = []
beforeEach(async () => {
  made = await alertInstallation()
  await made.alert('sink_lag', { quiet_minutes: 0 })
  lag()
})
afterEach(async () => {
  made.store.remove()
  for (const stop of stops) await stop()
  stops = []
})

const started = <Kind extends Receiver | MailServer>(receiver: Kind): Kind => {
  stops.push(() => receiver.stop())
  return receiver
}
const lag = (about = 'The sink splunk is an hour late.') => {
  made.sources.sinkLag = async () => [{ subject: 'splunk', value: 3600, about: () => about }]
}
const over = () => {
  made.sources.sinkLag = async () => []
}
const round = async (holder = 'one') => {
  await evaluateAlerts(made.dependencies)
  await deliver(holder)
}
/** Receivers of webhooks compare the time of the signature with their own clock. */
const deliver = (holder = 'one', dependencies = made.dependencies) =>
  deliverNotices(dependencies, holder, { ...toolsOf(dependencies), now: Date.now })
/** Lets the rest of a channel that failed end. */
const wait = () => made.store.ledger.write([{ sql: 'update alert_channels set retry_at = 0', args: [] }])
const channels = () =>
  made.store.ledger.read<{ failures: number; failing_since: number | null; last_error: string | null }>(
    'select failures, failing_since, last_error from alert_channels',
  )
const states = async () => (await made.deliveries()).map(({ kind, state }) => `${kind} ${state}`)

test('a webhook gets a signed notice that its own library verifies, and one when it is over', async () => {
  const receiver = started(webhookReceiver(secret))
  await made.channel('webhook', { url: receiver.url, signing_secret: secret })
  await round()
  over()
  await round()
  expect(receiver.received.map(({ body }) => body.type)).toEqual(['alert.fired', 'alert.resolved'])
  expect(receiver.received[0]?.body.data).toMatchObject({
    ...{
      condition: 'sink_lag',
      subject: 'splunk',
      value: 3600,
      threshold: 300,
      severity: 'warning',
      resolved_at: null,
    },
    ...{ about: 'The sink splunk is an hour late.', url: 'https://gatehouse.example.com/console/alerts' },
  })
  expect(receiver.received.map(({ id }) => id)).toEqual((await made.deliveries()).map(({ id }) => id))
  expect(await states()).toEqual(['fired sent', 'resolved sent'])
})

test('Slack, Teams and PagerDuty take the forms, and names of callers are no markup in them', async () => {
  lag(`${hostile} ${'x'.repeat(5000)}`)
  const [slack, teams, pagerDuty] = [started(slackReceiver()), started(teamsReceiver()), started(pagerDutyReceiver())]
  await made.channel('slack', { url: slack.url })
  await made.channel('teams', { url: teams.url })
  await made.channel('pagerduty', { url: pagerDuty.url, routing_key: 'R'.repeat(32) })
  await round()
  over()
  await round()
  expect(await states()).toEqual([...Array(3).fill('fired sent'), ...Array(3).fill('resolved sent')])
  expect(String(slack.received[0]?.body.text)).toContain('&lt;!channel&gt; &lt;https://evil.example|click&gt;')
  expect(teams.received).toHaveLength(2)
  const [fired, resolved] = pagerDuty.received.map(({ body }) => body)
  expect([fired?.event_action, resolved?.event_action]).toEqual(['trigger', 'resolve'])
  expect(fired?.dedup_key).toBe(resolved?.dedup_key)
})

test('a mail server gets a mail with the notice as its id', async () => {
  const server = started(await mailServer())
  await made.channel(
    'email',
    {},
    {
      ...{ smtp_host: '127.0.0.1', smtp_port: server.port, smtp_tls: 'none' },
      ...{ mail_from: 'gatehouse@example.com', mail_to: ['ann@example.com', 'bob@example.com'] },
    },
  )
  await round()
  const [mail] = server.mails
  const [delivery] = await made.deliveries()
  expect(mail).toMatchObject({ from: 'gatehouse@example.com', to: ['ann@example.com', 'bob@example.com'] })
  expect(mail?.text).toContain(`Message-ID: <${delivery?.id}@gatehouse.alerts>`)
  expect(mail?.text).toContain('The sink splunk is an hour late.')
  over()
  await round()
  const [firing] = await made.firings()
  const thread = `References: <${firing?.id}@gatehouse.alerts>`
  expect(server.mails.map(({ text }) => text.includes(thread))).toEqual([true, true])
})

test('a password is not sent to a mail server whose certificate is not accepted', async () => {
  const server = started(await mailServer({ password: 'hunter2' }))
  await made.channel(
    'email',
    { smtp_password: 'hunter2' },
    {
      ...{ smtp_host: '127.0.0.1', smtp_port: server.port, smtp_username: 'gatehouse' },
      ...{ mail_from: 'gatehouse@example.com', mail_to: ['ann@example.com'] },
    },
  )
  await round()
  expect(server.mails).toEqual([])
  const [channel] = await channels()
  expect(channel?.last_error).toMatch(/certificate is not accepted|did not succeed/)
  expect(channel?.last_error).not.toContain('hunter2')
})

test('a channel that is down is tried again later and later, says so, and catches up in order', async () => {
  const receiver = started(webhookReceiver(secret))
  receiver.answer = () => new Response(null, { status: 503 })
  await made.channel('webhook', { url: receiver.url, signing_secret: secret })
  await round()
  over()
  await round()
  expect(receiver.received).toHaveLength(1)
  expect(await channels()).toMatchObject([{ failures: 1, last_error: 'It answered 503' }])
  const rests: number[] = []
  for (let failures = 2; failures <= 9; failures += 1) {
    await wait()
    await deliver()
    const [row] = await made.store.ledger.read<{ rest: number }>(
      "select retry_at - cast(unixepoch('subsec') * 1000 as integer) as rest from alert_channels",
    )
    rests.push(Math.round((row?.rest ?? 0) / 1000))
  }
  expect(rests).toEqual([20, 40, 80, 160, 320, 640, 900, 900])
  const [failing] = await channels()
  expect(failing?.failing_since).toBeNumber()
  receiver.answer = null
  receiver.received.length = 0
  await wait()
  await deliver()
  expect(receiver.received.map(({ body }) => body.type)).toEqual(['alert.fired', 'alert.resolved'])
  expect(await channels()).toEqual([{ failures: 0, failing_since: null, last_error: null }])
})

test('a notice that the receiver refuses as such is given up, and does not hold up the others', async () => {
  const receiver = started(slackReceiver())
  receiver.answer = () => new Response('invalid_payload', { status: 400 })
  await made.channel('slack', { url: receiver.url })
  await round()
  receiver.answer = null
  over()
  await round()
  expect(await states()).toEqual(['fired failed', 'resolved sent'])
})

test('a notice that was not delivered within a day is given up', async () => {
  const receiver = started(slackReceiver())
  receiver.answer = () => new Response(null, { status: 500 })
  await made.channel('slack', { url: receiver.url })
  await round()
  expect(await states()).toEqual(['fired pending'])
  made.clock.advance(86_400_001)
  await wait()
  await deliver()
  expect(await states()).toEqual(['fired failed'])
})

test('two control planes that deliver at the same time send each notice once', async () => {
  const receiver = started(webhookReceiver(secret))
  receiver.answer = async () => {
    await Bun.sleep(20)
    return new Response(null, { status: 204 })
  }
  await made.channel('webhook', { url: receiver.url, signing_secret: secret })
  made.sources.sinkLag = async () =>
    Array.from({ length: 10 }, (_, index) => ({ subject: `sink ${index}`, value: 3600, about: () => `sink ${index}` }))
  await evaluateAlerts(made.dependencies)
  await Promise.all(['one', 'two', 'three'].map((holder) => deliver(holder)))
  const ids = receiver.received.map(({ id }) => id)
  expect(ids).toHaveLength(10)
  expect(new Set(ids).size).toBe(10)
})

test('what a control plane that died was sending is sent again with the same id, once its claim has ended', async () => {
  const receiver = started(webhookReceiver(secret))
  await made.channel('webhook', { url: receiver.url, signing_secret: secret })
  await evaluateAlerts(made.dependencies)
  // It claims the channel, sends, and dies before it notes that: its claim and the notice stay.
  const { ledger } = made.dependencies
  const dying = { ...ledger, write: () => Promise.reject(new Error('Killed')) }
  await expect(deliver('dead', { ...made.dependencies, ledger: dying })).rejects.toThrow('Killed')
  await deliver('other')
  expect(receiver.received).toHaveLength(1)
  await ledger.write([{ sql: 'update alert_channels set claimed_until = claimed_until - 30000', args: [] }])
  await deliver('other')
  const [first, second, ...more] = receiver.received.map(({ id }) => id)
  expect(first).toBe(second)
  expect(more).toEqual([])
  expect(await states()).toEqual(['fired sent'])
})

test('no address inside is called unless the settings allow it, and no redirect is followed', async () => {
  const receiver = started(slackReceiver())
  await made.channel('slack', { url: receiver.url.replace('127.0.0.1', 'localhost') })
  await evaluateAlerts(made.dependencies)
  const guarded = {
    ...made.dependencies,
    settings: { ...made.dependencies.settings, webhook_addresses: 'outside' as const },
  }
  await deliverNotices(guarded, 'one', toolsOf(guarded))
  expect(receiver.received).toEqual([])
  const [channel] = await channels()
  expect(channel?.last_error).toContain('webhook_addresses')
  const other = started(slackReceiver())
  receiver.answer = () => Response.redirect(other.url, 307)
  await wait()
  await deliver()
  expect(other.received).toEqual([])
  expect((await channels())[0]?.last_error).toBe('It answered 307: redirects are not followed')
})

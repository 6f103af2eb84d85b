/** Alerts, channels and the history through their routes: what is refused, what a change ends, and who sees what. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { pagerDutyReceiver, slackReceiver } from '../../test/fakes/notice-receivers.ts'
import { recordedEvents } from '../events/testing/recorded.ts'
import { silentLog } from '../lib/log/log.ts'
import {
  type TemporaryControlPlane,
  temporaryControlPlane,
  testOrigin,
} from '../members/testing/temporary-control-plane.ts'
import { alertRoutes, firingRoutes } from './alert-routes.ts'
import { channelRoutes, channelTestRoute } from './channel-routes.ts'
import { deliverNotices } from './delivery/deliver.ts'
import type { AlertDependencies } from './dependencies.ts'
import { evaluateAlerts } from './evaluate.ts'

let plane: TemporaryControlPlane
let dependencies: AlertDependencies
let lag = 0
const slack = slackReceiver()
beforeAll(async () => {
  plane = await temporaryControlPlane(testOrigin, (members) => {
    dependencies = {
      ...members,
      log: silentLog,
      settings: { webhook_addresses: 'any', event_retention_days: 30 },
      sources: { sinkLag: async () => [{ subject: 'splunk', value: lag, about: () => `It lags by ${lag} seconds.` }] },
    }
    return [
      alertRoutes(dependencies),
      firingRoutes(dependencies),
      channelRoutes(dependencies),
      channelTestRoute(dependencies),
    ]
  })
})
afterAll(() => {
  plane.remove()
  slack.stop()
})

const asAdmin = (method: string, to: string, body?: unknown, headers: Record<string, string> = {}) =>
  plane.call(method, to, { token: plane.adminToken, headers, ...(body === undefined ? {} : { body }) })
const fault = async (path: string, body: unknown) => {
  const { status, json } = await asAdmin('POST', path, body)
  return [status, json.error?.param]
}

test('a new installation has alerts that need no configuration', async () => {
  const { alerts } = (await asAdmin('GET', '/v1/alerts')).json
  expect(alerts).toHaveLength(12)
  expect(alerts[0]).toMatchObject({
    ...{ name: 'Many requests are refused', condition: 'refusals', severity: 'critical', thresholds: [50], unit: '%' },
    ...{ window_minutes: 10, at_least: 20, scope: { kind: 'organization', id: null }, enabled: true, open: 0 },
  })
  const ofTargets = alerts.find(({ condition }: { condition: string }) => condition === 'circuit_open')
  expect(ofTargets).toMatchObject({ thresholds: [1], unit: 'gateway processes', unit_of_one: 'gateway process' })
})

test('makes, changes and deletes an alert, each with an event and a version', async () => {
  const made = await asAdmin('POST', '/v1/alerts', { name: 'Sinks', condition: 'sink_lag', thresholds: [60, 600] })
  expect(made.status).toBe(201)
  expect(made.json).toMatchObject({ thresholds: [60, 600], window_minutes: null, at_least: null })
  const one = `/v1/alerts/${made.json.id}`
  expect((await asAdmin('PATCH', one, { enabled: false }, { 'if-match': '"0"' })).status).toBe(412)
  for (const field of ['window_minutes', 'at_least']) {
    expect((await asAdmin('PATCH', one, { [field]: 5 })).json.error?.param).toBe(field)
  }
  const changed = await asAdmin('PATCH', one, { thresholds: null, window_minutes: null, quiet_minutes: 5 })
  expect(changed.json).toMatchObject({ thresholds: [300], quiet_minutes: 5, version: 2 })
  expect((await asAdmin('DELETE', one)).status).toBe(200)
  expect((await asAdmin('GET', one)).status).toBe(404)
  const [updated] = await recordedEvents(plane.store.ledger, 'alert.updated')
  expect(updated?.details).toMatchObject({ name: 'Sinks', fields: ['thresholds', 'window_minutes', 'quiet_minutes'] })
})

test('refuses what does not fit a condition, and names the field', async () => {
  const path = '/v1/alerts'
  const good = { name: 'Good', condition: 'refusals' }
  expect(await fault(path, { ...good, name: 'Many requests are refused' })).toEqual([409, 'name'])
  expect(await fault(path, { ...good, condition: 'weather' })).toEqual([422, 'condition'])
  expect(await fault(path, { ...good, condition: 'sink_lag', scope: { kind: 'team', id: 'x' } })).toEqual([
    422,
    'scope.kind',
  ])
  expect(await fault(path, { ...good, scope: { kind: 'team' } })).toEqual([422, 'scope.id'])
  expect(await fault(path, { ...good, scope: { kind: 'team', id: 'x' } })).toEqual([422, 'scope.id'])
  for (const kind of ['gateway', 'provider', 'model', 'token', 'budget']) {
    const condition =
      kind === 'provider' ? 'error_rate' : kind === 'token' || kind === 'budget' ? 'budget_share' : 'refusals'
    const made = await asAdmin('POST', path, { name: kind, condition, scope: { kind, id: 'nobody' } })
    expect([kind, made.status, made.json.error?.param]).toEqual([kind, 422, 'scope.id'])
    expect(made.json.error?.message).toContain(`There is no ${kind} `)
  }
  expect(await fault(path, { ...good, condition: 'error_rate', reasons: ['policy.*'] })).toEqual([422, 'reasons'])
  for (const kind of ['gateway', 'provider', 'token']) {
    expect([kind, ...(await fault(path, { ...good, scope: { kind, id: 'nowhere' } }))]).toEqual([kind, 422, 'scope.id'])
  }
  const share = { name: 'Good', condition: 'budget_share', scope: { kind: 'budget', id: 'nowhere' } }
  expect(await fault(path, share)).toEqual([422, 'scope.id'])
  for (const condition of ['sink_lag', 'spend_rate', 'budget_share']) {
    expect(await fault(path, { ...good, condition, window_minutes: 5 })).toEqual([422, 'window_minutes'])
  }
  for (const condition of ['token_expiring', 'bound_violated', 'doctor_finding']) {
    expect(await fault(path, { ...good, condition, at_least: 5 })).toEqual([422, 'at_least'])
  }
  expect(await fault(path, { ...good, reasons: ['(a+)+$'] })).toEqual([422, 'reasons.0'])
  expect(await fault(path, { ...good, channel_ids: [crypto.randomUUID()] })).toEqual([422, 'channel_ids.0'])
  expect(await fault(path, { ...good, thresholds: [] })).toEqual([422, 'thresholds'])
  for (const [condition, most] of [
    ['refusals', 100],
    ['error_rate', 100],
    ['doctor_finding', 2],
    ['verify_finding', 1],
  ] as const) {
    const refused = await asAdmin('POST', path, { name: 'Never', condition, thresholds: [1, most + 0.5] })
    expect([condition, refused.status, refused.json.error?.param]).toEqual([condition, 422, 'thresholds.1'])
    expect(refused.json.error?.message).toContain(`is never above ${most} `)
    expect((await asAdmin('POST', path, { name: condition, condition, thresholds: [most] })).status).toBe(201)
  }
})

test('refuses reasons that nothing gives, with the nearest one, and takes those of policies', async () => {
  const make = async (reasons: string[]) => {
    const made = await asAdmin('POST', '/v1/alerts', { name: reasons.join(), condition: 'refusals', reasons })
    return [made.status, made.json.error?.param, made.json.error?.message]
  }
  expect(await make(['tokens.*', 'tokens.expire'])).toEqual([
    422,
    'reasons.1',
    'No policy and no part of Gatehouse gives "tokens.expire": did you mean tokens.expired?',
  ])
  const [, param, message] = await make(['zzz*'])
  expect([param, message]).toEqual(['reasons.0', expect.stringContaining('No reason fits "zzz*"')])
  const addPolicy = (id: string, kind: string, config: object) =>
    plane.store.state.write([
      {
        sql: `insert into policies (id, kind, stages, config, targets, position, mode, when_broken, enabled, version)
          values (?, ?, '[]', ?, '{}', 1, 'enforce', 'deny', 1, 1)`,
        args: [id, kind, JSON.stringify(config)],
      },
    ])
  expect((await make(['finance.transfer']))[0]).toBe(422)
  await addPolicy('own', 'escalate', { reason_code: 'finance.transfer' })
  expect((await make(['finance.transfer']))[0]).toBe(201)
  expect((await make(['finance.*', 'policy.model_not_allowed']))[0]).toBe(201)
  await addPolicy('asks', 'webhook', { url: 'https://policy.example.com' })
  expect((await make(['names.found']))[0]).toBe(201)
  await plane.store.state.write([{ sql: 'delete from policies', args: [] }])
})

test('refuses to watch what a token does not have', async () => {
  const token = async (name: string, fields: object): Promise<string> =>
    (await asAdmin('POST', '/v1/tokens', { name, purpose: 'general', ...fields })).json.id
  const watch = async (condition: string, id: string, fields: object = {}) => {
    const body = { name: `${condition} ${id}`, condition, scope: { kind: 'token', id }, ...fields }
    const made = await asAdmin('POST', '/v1/alerts', body)
    return { param: made.json.error?.param, id: made.json.id }
  }
  const endless = await token('endless', {})
  const short = await token('short', { expires_in_seconds: 5 * 86_400 })
  expect((await watch('token_expiring', endless)).param).toBe('scope.id')
  expect((await watch('budget_share', endless)).param).toBe('scope.id')
  expect((await watch('token_expiring', short)).param).toBe('thresholds.0')
  const made = await watch('token_expiring', short, { thresholds: [3] })
  expect(made.param).toBeUndefined()
  const changed = await asAdmin('PATCH', `/v1/alerts/${made.id}`, { thresholds: [3, 6] })
  expect(changed.json.error).toMatchObject({
    param: 'thresholds.1',
    message: 'The token "short" was made for 5 days: write fewer days than that',
  })
})

test('an alert for a team that was deleted can still be changed', async () => {
  const { id: team } = (await asAdmin('POST', '/v1/teams', { name: 'short-lived' })).json
  const body = { name: 'Short-lived', condition: 'refusals', scope: { kind: 'team', id: team } }
  const made = await asAdmin('POST', '/v1/alerts', body)
  expect(made.status).toBe(201)
  await plane.store.ledger.write([{ sql: 'delete from teams where id = ?', args: [team] }])
  expect((await asAdmin('PATCH', `/v1/alerts/${made.json.id}`, { enabled: false })).status).toBe(200)
})

test('a channel keeps its address and secrets sealed, and shows neither', async () => {
  const made = await asAdmin('POST', '/v1/alert-channels', { name: 'On call', kind: 'slack', url: slack.url })
  expect(made.status).toBe(201)
  expect(made.json).toMatchObject({ kind: 'slack', host: new URL(slack.url).host, state: 'unused', waiting: 0 })
  const one = `/v1/alert-channels/${made.json.id}`
  const changed = await asAdmin('PATCH', one, { name: 'Night' })
  expect(JSON.stringify([made.json, changed.json])).not.toContain('B000')
  const rows = await plane.store.ledger.read('select * from alert_channels, secrets')
  expect(JSON.stringify(rows)).not.toContain('B000')
  // The address is still there.
  expect((await asAdmin('POST', `${one}/test`, {})).json).toEqual({ delivered: true, error: null })
  expect(slack.received.at(-1)?.body.text).toStartWith('Test: ')
  slack.answer = () => new Response('no_service', { status: 404 })
  expect((await asAdmin('POST', `${one}/test`, {})).json).toEqual({
    delivered: false,
    error: 'It answered 404: its address or key is not valid (any more)',
  })
  slack.answer = null
  expect((await asAdmin('DELETE', one)).status).toBe(200)
  expect(await plane.store.ledger.read("select * from secrets where name like 'alert-channel:%'")).toEqual([])
})

test('says which secrets a channel has, and sends none of them to another server', async () => {
  const path = '/v1/alert-channels'
  const mail = await asAdmin('POST', path, {
    ...{ name: 'Mailed', kind: 'email', smtp_host: 'mail.example.com', mail_from: 'a@b.com', mail_to: ['c@d.com'] },
    ...{ smtp_username: 'u', smtp_password: 'p' },
  })
  const pager = await asAdmin('POST', path, { name: 'Pager', kind: 'pagerduty', routing_key: 'R'.repeat(32) })
  expect(mail.json).toMatchObject({ has_smtp_password: true, has_url: false })
  expect(pager.json).toMatchObject({ has_routing_key: true, has_signing_secret: false, has_url: false })
  const patch = async (made: typeof mail, body: object) => {
    const { status, json } = await asAdmin('PATCH', `${path}/${made.json.id}`, body)
    return [status, json.error?.param]
  }
  expect(await patch(mail, { smtp_host: 'other.example.com' })).toEqual([422, 'smtp_password'])
  expect(await patch(mail, { smtp_port: 2525 })).toEqual([422, 'smtp_password'])
  expect(await patch(pager, { url: 'https://other.example.com/' })).toEqual([422, 'routing_key'])
  expect(await patch(mail, { smtp_host: 'other.example.com', smtp_password: 'q' })).toEqual([200, undefined])
  expect(await patch(mail, { smtp_username: null, smtp_password: null })).toEqual([200, undefined])
  for (const made of [mail, pager]) await asAdmin('DELETE', `${path}/${made.json.id}`)
})

test('refuses a channel that lacks what its kind needs, or has what it has no use for', async () => {
  const path = '/v1/alert-channels'
  const url = 'https://receiver.example.com/x'
  const mail = {
    name: 'Mail',
    kind: 'email',
    smtp_host: 'mail.example.com',
    mail_from: 'a@b.com',
    mail_to: ['c@d.com'],
  }
  expect(await fault(path, { name: 'a', kind: 'webhook', url })).toEqual([422, 'signing_secret'])
  expect(await fault(path, { name: 'a', kind: 'webhook', url, signing_secret: 'short' })).toEqual([
    422,
    'signing_secret',
  ])
  expect(await fault(path, { name: 'a', kind: 'slack' })).toEqual([422, 'url'])
  expect(await fault(path, { name: 'a', kind: 'slack', url: 'https://u:p@example.com' })).toEqual([422, 'url'])
  expect(await fault(path, { name: 'a', kind: 'slack', url, routing_key: 'R'.repeat(32) })).toEqual([
    422,
    'routing_key',
  ])
  expect(await fault(path, { name: 'a', kind: 'pagerduty' })).toEqual([422, 'routing_key'])
  expect(await fault(path, { ...mail, mail_to: [] })).toEqual([422, 'mail_to'])
  expect(await fault(path, { ...mail, mail_to: ['a@b.com\r\nBcc: c@d.com'] })).toEqual([422, 'mail_to.0'])
  expect(await fault(path, { ...mail, smtp_username: 'u' })).toEqual([422, 'smtp_password'])
  expect(await fault(path, { ...mail, smtp_tls: 'none', smtp_username: 'u', smtp_password: 'p' })).toEqual([
    422,
    'smtp_tls',
  ])
})

test('a trial measures and sends nothing; the history shows what fired with its notices', async () => {
  const channel = await asAdmin('POST', '/v1/alert-channels', { name: 'Day', kind: 'slack', url: slack.url })
  const alert = await asAdmin('POST', '/v1/alerts', { name: 'Lag', condition: 'sink_lag', thresholds: [60] })
  lag = 100
  const trial = await asAdmin('POST', `/v1/alerts/${alert.json.id}/test`, {})
  expect(trial.json).toEqual({
    known: true,
    measured: [{ subject: 'splunk', value: 100, reached: [60], about: 'It lags by 100 seconds.' }],
  })
  expect((await asAdmin('GET', '/v1/alert-firings')).json.alert_firings).toEqual([])
  await evaluateAlerts(dependencies)
  const { alert_firings: firings } = (await asAdmin('GET', `/v1/alert-firings?state=open&alert_id=${alert.json.id}`))
    .json
  expect(firings).toMatchObject([
    {
      ...{ alert: 'Lag', condition: 'sink_lag', subject: 'splunk', value: 100, threshold: 60, resolved_at: null },
      notices: [{ channel_id: channel.json.id, channel: 'Day', kind: 'fired', state: 'pending', attempts: 0 }],
    },
  ])
  expect((await asAdmin('GET', `/v1/alerts/${alert.json.id}`)).json.open).toBe(1)
  const off = await asAdmin('PATCH', `/v1/alert-channels/${channel.json.id}`, { enabled: false })
  expect(off.json).toMatchObject({ enabled: false, waiting: 0 })
  await asAdmin('PATCH', `/v1/alerts/${alert.json.id}`, { enabled: false })
  expect((await asAdmin('GET', '/v1/alert-firings?state=open')).json.alert_firings).toEqual([])
})

test('disabling or deleting an alert resolves what it has open, with an event and a notice to those that were told', async () => {
  const pager = pagerDutyReceiver()
  await plane.store.ledger.write([{ sql: "update alerts set enabled = 0 where condition = 'sink_lag'", args: [] }])
  try {
    const keys = { kind: 'pagerduty', url: pager.url, routing_key: 'R'.repeat(32) }
    const channel = (await asAdmin('POST', '/v1/alert-channels', { name: 'Pager', ...keys })).json.id
    const sinks = { condition: 'sink_lag', channel_ids: [channel], quiet_minutes: 0 }
    const make = async (name: string, fields: object = {}): Promise<string> =>
      `/v1/alerts/${(await asAdmin('POST', '/v1/alerts', { name, ...sinks, ...fields })).json.id}`
    const [disabled, deleted] = [await make('Disabled', { thresholds: [60, 600] }), await make('Deleted')]
    const silent = await make('Silent', { send_resolved: false })
    lag = 3600
    const round = async () => {
      await evaluateAlerts(dependencies)
      await deliverNotices(dependencies, 'one')
    }
    const sent = () => pager.received.map(({ body }) => [body.event_action, body.dedup_key])
    await round()
    const triggers = sent().filter(([action]) => action === 'trigger')
    expect(triggers).toHaveLength(3)
    const before = (await recordedEvents(plane.store.ledger, 'alert.resolved')).length
    expect((await asAdmin('PATCH', disabled, { enabled: false })).status).toBe(200)
    for (const each of [deleted, silent]) expect((await asAdmin('DELETE', each)).status).toBe(200)
    await round()
    const resolved = sent().filter(([action]) => action === 'resolve')
    const [first, second] = triggers.map(([, key]) => key)
    expect(resolved.map(([, key]) => key)).toEqual([first, second])
    const events = (await recordedEvents(plane.store.ledger, 'alert.resolved')).slice(before)
    expect(events.map(({ details }) => [details?.name, details?.threshold])).toEqual([
      ['Disabled', 60],
      ['Disabled', 600],
      ['Deleted', 300],
      ['Silent', 300],
    ])
    expect((await asAdmin('PATCH', disabled, { enabled: true })).json.open).toBe(0)
    plane.clock.advance(1000)
    await round()
    expect(sent().filter(([action]) => action === 'trigger')).toHaveLength(4)
    // Its quiet time begins again with it.
    expect((await asAdmin('PATCH', disabled, { quiet_minutes: 60 })).status).toBe(200)
    for (const enabled of [false, true]) await asAdmin('PATCH', disabled, { enabled })
    plane.clock.advance(1000)
    await round()
    expect(sent().filter(([action]) => action === 'trigger')).toHaveLength(5)
    for (const seconds of [0, 3600]) {
      lag = seconds
      await round()
    }
    expect(sent().filter(([action]) => action === 'trigger')).toHaveLength(5)
  } finally {
    lag = 0
    pager.stop()
  }
})

test('those who may only read change nothing, and a token of a team sees nothing', async () => {
  await plane.addPerson('au@example.com', 'auditor')
  const browser = await plane.signInAs('au@example.com')
  const asAuditor = { cookie: browser.cookie, headers: plane.fromPage(browser) }
  expect((await plane.call('GET', '/v1/alerts', asAuditor)).status).toBe(200)
  const body = { name: 'theirs', condition: 'refusals' }
  expect((await plane.call('POST', '/v1/alerts', { ...asAuditor, body })).status).toBe(403)
  const made = await asAdmin('POST', '/v1/tokens', {
    ...{ name: 'of a team', purpose: 'general', roles: ['operator'], bindings: { team_id: plane.teamId } },
  })
  for (const path of ['/v1/alerts', '/v1/alert-channels', '/v1/alert-firings']) {
    expect((await plane.call('GET', path, { token: made.json.token_value })).status).toBe(403)
  }
})

test('what a deleted alert has found still says what the alert and its channel were called', async () => {
  const channel = await asAdmin('POST', '/v1/alert-channels', { name: 'Gone room', kind: 'slack', url: slack.url })
  const alert = await asAdmin('POST', '/v1/alerts', {
    ...{ name: 'Gone watch', condition: 'sink_lag', thresholds: [60], channel_ids: [channel.json.id] },
  })
  lag = 100
  await evaluateAlerts(dependencies)
  lag = 0
  expect((await asAdmin('DELETE', `/v1/alerts/${alert.json.id}`)).status).toBe(200)
  expect((await asAdmin('DELETE', `/v1/alert-channels/${channel.json.id}`)).status).toBe(200)
  const { alert_firings: firings } = (await asAdmin('GET', `/v1/alert-firings?alert_id=${alert.json.id}`)).json
  expect(firings).toMatchObject([{ alert: 'Gone watch', alert_deleted: true }])
  for (const notice of firings[0].notices) expect(notice).toMatchObject({ channel: 'Gone room', channel_deleted: true })
})

import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { declareDimensions } from '../events/testing/ledger.ts'
import { recordedEvents, recordedTexts } from '../events/testing/recorded.ts'
import { silentLog } from '../lib/log/log.ts'
import { type TemporaryControlPlane, temporaryControlPlane } from '../members/testing/temporary-control-plane.ts'
import { sinkRoutes } from './sink-routes.ts'

let plane: TemporaryControlPlane
let answer: () => Response = () => new Response()
beforeAll(async () => {
  plane = await temporaryControlPlane(undefined, (deps) =>
    sinkRoutes({ ...deps, log: silentLog, plainHttp: 'loopback', fetch: async () => answer(), seen: () => null }),
  )
})
beforeEach(() => {
  answer = () => new Response()
})
afterAll(() => plane.remove())

const path = '/v1/sinks'
const secretToken = 'splunk-secret-1'
let made = 0
const valid = () => ({
  name: `siem-${++made}`,
  kind: 'splunk',
  url: 'https://splunk.example.com/services/collector',
  credentials: { token: secretToken, headers: { 'X-Key': 'header-secret-2' } },
})
const call = (method: string, at: string, body?: unknown, headers: Record<string, string> = {}) =>
  plane.call(method, at, { token: plane.adminToken, headers, ...(body === undefined ? {} : { body }) })
const refused = async (...sent: Parameters<typeof call>) => {
  const { status, json } = await call(...sent)
  return [status, json.error?.param ?? json.error?.code]
}

test('creates, shows, changes and deletes a sink, each with its event and without its credentials', async () => {
  const created = await call('POST', path, {
    ...valid(),
    splunk: { index: 'audit' },
    filter: 'event.verdict != "allow"',
  })
  expect(created.status).toBe(201)
  const one = `${path}/${created.json.id}`
  expect(created.json).toMatchObject({
    ...{ kind: 'splunk', format: 'events', enabled: true, state: 'delivering', delivered: 0, version: 1 },
    credential_names: ['token', 'headers.X-Key'],
    splunk: { index: 'audit', source: 'gatehouse', sourcetype: '_json' },
  })
  const changed = await call('PATCH', one, { enabled: false, filter: null }, { 'if-match': '"1"' })
  expect(changed.json).toMatchObject({ enabled: false, state: 'disabled', filter: null, version: 2 })
  expect(await refused('PATCH', one, { enabled: true }, { 'if-match': '"1"' })).toEqual([412, 'version_mismatch'])
  expect((await call('GET', path)).json.sinks.at(-1)).toMatchObject({ id: created.json.id, state: 'disabled' })
  expect((await call('DELETE', one)).status).toBe(200)
  expect((await call('GET', one)).status).toBe(404)
  const { ledger } = plane.store
  for (const type of ['sink.created', 'sink.updated', 'sink.deleted'] as const) {
    const events = await recordedEvents(ledger, type)
    expect(events.filter(({ details }) => details?.sink_id === created.json.id)).toHaveLength(1)
  }
  expect(await ledger.read('select name from secrets where name = ?', [`sink:${created.json.id}`])).toEqual([])
  const texts = [...(await recordedTexts(ledger)), created.text, changed.text].join('')
  expect(texts).not.toContain(secretToken)
  expect(texts).not.toContain('header-secret-2')
})

test('names the field of what it refuses', async () => {
  const s3 = { kind: 's3', url: 'https://s3.example.com', credentials: { access_key_id: 'a', secret_access_key: 'b' } }
  const cases: [object, string][] = [
    [{ kind: 'unknown' }, 'kind'],
    [{ url: 'http://splunk.example.com' }, 'url'],
    [{ url: 'https://user:word@splunk.example.com' }, 'url'],
    [{ url: 'https://splunk.example.com/?token=1' }, 'url'],
    [{ url: 'nonsense' }, 'url'],
    [{ credentials: {} }, 'credentials.token'],
    [{ filter: 'event.' }, 'filter'],
    [{ filter: 'request.model == "x"' }, 'filter'],
    [{ filter: 'event.model == "x"' }, 'filter'],
    [{ kind: 'otlp', url: 'https://otlp.example.com', format: 'records' }, 'format'],
    [{ s3: { bucket: 'b' } }, 's3'],
    [s3, 's3'],
    [{ ...s3, s3: { bucket: 'b', prefix: 'no-slash' } }, 's3.prefix'],
    [{ kind: 'syslog', url: 'tcp://log.example.com:514' }, 'url'],
    [{ kind: 'kafka', url: 'kafkas://one.example.com', kafka: { topic: 't' } }, 'url'],
    [{ kind: 'kafka', url: 'kafka://one.example.com:9092', kafka: { topic: 't' } }, 'url'],
    [{ ca_certificate: 'nonsense' }, 'ca_certificate'],
  ]
  for (const [change, param] of cases) {
    expect([change, ...(await refused('POST', path, { ...valid(), ...change }))]).toEqual([change, 422, param])
  }
})

test('names the member of a filter that no event has, and those that events have', async () => {
  const filtered = async (filter: string, method = 'POST', at = path) => {
    const { status, json } = await call(method, at, method === 'POST' ? { ...valid(), filter } : { filter })
    return [status, json.error?.message ?? null]
  }
  const ofEvents = expect.stringMatching(
    /names event\.modle, which does not exist: event has event_id, event_type, .*details/,
  )
  const ofAttribution = expect.stringMatching(
    /event\.event_attribution\.team, which does not exist: .* has token_id, team_id/,
  )
  for (const filter of ['event.modle == "x"', 'event["modle"] == "x"', '"modle" in event', '!has(event.modle)']) {
    expect([filter, ...(await filtered(filter))]).toEqual([filter, 422, ofEvents])
  }
  expect(await filtered('event.verdict == "deny" && event.event_attribution.team == "x"')).toEqual([422, ofAttribution])
  expect(await filtered('event.event_cost_attribution.costs > 1.0')).toEqual([
    422,
    expect.stringContaining('has currency, cost'),
  ])
  const { id } = (await call('POST', path, valid())).json
  expect(await filtered('event.modle == "x"', 'PATCH', `${path}/${id}`)).toEqual([422, ofEvents])
  const ofDimensions = 'event.event_attribution.dimensions'
  expect(await filtered(`${ofDimensions}.customer == "acme"`)).toEqual([422, expect.stringContaining('has no members')])
  await declareDimensions(plane.store.state, 'customer')
  expect(await filtered(`${ofDimensions}.custmer == "acme"`)).toEqual([
    422,
    expect.stringContaining(`${ofDimensions} has customer. Did you mean customer?`),
  ])
  for (const filter of ['event.event_type.startsWith("gatway.")', 'event["verdict"].endsWith("!")']) {
    expect(await filtered(filter)).toEqual([422, expect.stringContaining('which holds for none')])
  }
  for (const filter of [
    'event.event_attribution.dimensions.customer == "acme"',
    'event.details.status >= 400 || event.details["of a later version"] == 1',
    'event.metadata["any label"] == "x" && event.settlements[0].amount > 0',
    '"customer" in event.event_attribution.dimensions',
    'event.event_cost_attribution.cost > 0.5',
    'event.event_type.startsWith("gateway.") || event.event_type.contains("token")',
    'event.event_attribution.dimensions["customer"].startsWith("a")',
  ]) {
    expect([filter, ...(await filtered(filter))]).toEqual([filter, 201, null])
  }
})

test('refuses a filter that compares a member with what it can never be, and names the member', async () => {
  const filtered = async (filter: string) => {
    const { status, json } = await call('POST', path, { ...valid(), filter })
    return [status, json.error?.param ?? null, json.error?.message ?? null]
  }
  for (const [filter, reason] of [
    ['event.verdict == 5', 'no such overload: string == int'],
    ['5 != event["verdict"]', 'no such overload: int != string'],
    ['event.config_version == "5"', 'no such overload: double == string'],
    ['event.verdict in [1, 2]', 'no such overload: string in list<int>'],
    ['event.event_cost_attribution.estimated == "true"', 'no such overload: bool == string'],
    ['event.metadata.label == 5', 'no such overload: string == int'],
    ['event.event_cost_attribution.cost + 1 > 4', 'no such overload: double + int'],
    ['event.verdict == "denied"', 'compares event.verdict with "denied", which it never is: it is one of allow, block'],
    ['event.verdict in ["deny", "blocked"]', 'compares event.verdict with "blocked"'],
    [
      '"token.make" == event.event_type',
      'compares event.event_type with "token.make", which it never is: it is one of',
    ],
  ] as const) {
    expect([filter, await filtered(filter)]).toEqual([filter, [422, 'filter', expect.stringContaining(reason)]])
  }
  for (const filter of [
    'event.request_id != null && event.event_cost_attribution != null',
    'event.config_version == 5 || event.event_cost_attribution.input_tokens in [1, 2]',
    'event.event_cost_attribution.cost > 1 && event.event_cost_attribution.cost * 2.0 > 3',
    'event.verdict in ["deny", "block"] && !(event.event_type.startsWith("auth."))',
    'event.details.status == 500 || event.details.status == "late"',
    'size(event.reason_code) > 4 && event.event_attribution.team_id == "a team"',
    'has(event.event_cost_attribution) && event.event_cost_attribution.estimated',
  ]) {
    expect([filter, await filtered(filter)]).toEqual([filter, [201, null, null]])
  }
})

test('takes what is on this host without TLS', async () => {
  for (const change of [
    { kind: 'http', url: 'http://127.0.0.1:9/in' },
    { kind: 'syslog', url: 'tcp://localhost:514' },
    { kind: 'kafka', url: 'kafka://127.0.0.1:9092,localhost:9093', kafka: { topic: 't' } },
    {
      kind: 's3',
      url: 'http://localhost:9000',
      s3: { bucket: 'b' },
      credentials: { access_key_id: 'a', secret_access_key: 'b' },
    },
  ]) {
    expect((await call('POST', path, { name: `local-${++made}`, ...change })).status).toBe(201)
  }
})

test('another address needs the credentials again', async () => {
  const { id } = (await call('POST', path, valid())).json
  const url = 'https://elsewhere.example.com/in'
  expect(await refused('PATCH', `${path}/${id}`, { url })).toEqual([422, 'credentials'])
  expect((await call('PATCH', `${path}/${id}`, { url, credentials: { token: 'new' } })).json).toMatchObject({
    url,
    version: 2,
  })
})

test('a name stands once', async () => {
  const body = valid()
  await call('POST', path, body)
  expect(await refused('POST', path, body)).toEqual([409, 'name'])
})

test('the test event says what the receiver answered, without the credential', async () => {
  const { id } = (await call('POST', path, valid())).json
  expect((await call('POST', `${path}/${id}/test`)).json).toMatchObject({ ok: true, error: null })
  answer = () => new Response(`no token ${secretToken}`, { status: 403 })
  expect((await call('POST', `${path}/${id}/test`)).json).toMatchObject({
    ok: false,
    error: 'The receiver answered 403: no token •',
  })
  expect((await recordedEvents(plane.store.ledger, 'sink.tested')).length).toBe(2)
})

test('only who sees the events of every team makes, changes and tries sinks', async () => {
  const { id } = (await call('POST', path, valid())).json
  await plane.addPerson('operator@example.com', 'operator')
  const operator = await plane.signInAs('operator@example.com')
  const as = { cookie: operator.cookie, headers: plane.fromPage(operator) }
  expect((await plane.call('GET', path, as)).status).toBe(200)
  expect((await plane.call('POST', path, { ...as, body: valid() })).status).toBe(403)
  expect((await plane.call('POST', `${path}/${id}/test`, as)).status).toBe(403)
  const bound = { name: 'bound', purpose: 'general', roles: ['admin'], bindings: { team_id: plane.teamId } }
  const { token_value: token } = (await call('POST', '/v1/tokens', bound)).json
  expect((await plane.call('PATCH', `${path}/${id}`, { token, body: { enabled: false } })).status).toBe(403)
})

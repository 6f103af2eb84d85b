import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { type FakeUpstream, startFakeUpstream } from '../fakes/upstream.ts'
import { errorAnswer, event, eventPage } from '../support/answers.ts'
import { api, chat, createToken, expectAnswer, installation } from '../support/client.ts'
import { eventually, until } from '../support/eventually.ts'
import { executable } from '../support/executable.ts'
import { cleanEnvironment, collect, type Gatehouse, operate, startGatehouse } from '../support/harness.ts'
import { eventsInLedger, eventsOfRequest, eventsThroughApi, outcomesOf } from '../support/recorded.ts'

setDefaultTimeout(120_000)

let upstream: FakeUpstream
let gatehouse: Gatehouse
let token: string
let tokenId: string
const startedAt = new Date().toISOString()

beforeAll(async () => {
  upstream = await startFakeUpstream()
  gatehouse = await startGatehouse({ upstream, env: { SERVICE_ENVIRONMENT: 'staging' } })
  const made = await createToken(gatehouse)
  token = made.token_value
  tokenId = made.id
  // Some of everything that the filters tell apart.
  for (let index = 0; index < 12; index++)
    await (await chat(gatehouse, { token, requestId: `allowed-${index}` })).text()
  const narrow = await createToken(gatehouse, { bindings: { model_filter: ['other'] } })
  for (let index = 0; index < 5; index++) {
    await (await chat(gatehouse, { token: narrow.token_value, requestId: `denied-${index}` })).text()
  }
  await eventsOfRequest(gatehouse, 'allowed-11')
  await eventsOfRequest(gatehouse, 'denied-4')
}, 240_000)
afterAll(async () => {
  await gatehouse?.stop()
  await upstream?.close()
})

const query = (parameters: Record<string, string>) => api(gatehouse, `/v1/events?${new URLSearchParams(parameters)}`)

test('an allowed request leaves one attempt and one outcome with all details', async () => {
  const text = 'a very private prompt'
  await (await chat(gatehouse, { token, requestId: 'the-story', text })).text()
  const events = await eventsOfRequest(gatehouse, 'the-story')
  expect(events.map(({ event_type }) => event_type)).toEqual(['gateway.provider.attempt', 'gateway.request.outcome'])
  const [attempt, outcome] = events
  const { gatewayId } = await installation(gatehouse)
  expect(outcome).toMatchObject({
    verdict: 'allow',
    reason_code: 'ok',
    event_attribution: { token_id: tokenId, gateway_id: gatewayId },
    details: { model: 'fake-model', provider: 'openai', status: 200, attempts: 1, stream: false },
    event_cost_attribution: { input_tokens: 11, output_tokens: 7, estimated: false, model: 'fake-model' },
  })
  expect(outcome?.details?.route).toContain('/v1/chat/completions')
  expect(outcome?.details?.latency_ms).toBeNumber()
  expect(outcome?.prompt_hash).toBeString()
  expect(outcome?.event_attribution.team_id).toBeString()
  expect(attempt).toMatchObject({ verdict: 'allow', details: { attempt: 1, status: 200, model: 'fake-model' } })
  expect(attempt?.exchange_id).toBe(outcome?.exchange_id)
  expect(JSON.stringify(events)).not.toContain(text)
})

test('events name their environment and the change that made their configuration', async () => {
  // Of a token that was just made, before a checkpoint, which has no event, makes another version.
  const { token_value: newest } = await createToken(gatehouse)
  await (await chat(gatehouse, { token: newest, requestId: 'by-the-newest' })).text()
  const [outcome] = outcomesOf(await eventsOfRequest(gatehouse, 'by-the-newest'), 'by-the-newest')
  const change = eventsInLedger(gatehouse).find(({ event_id }) => event_id === outcome?.config_id)
  expect(change).toMatchObject({ event_type: 'token.created', config_version: outcome?.config_version })
  expect([outcome?.environment, change?.environment]).toEqual(['staging', 'staging'])
})

test('a stream is recorded with its usage and time to first token', async () => {
  await (await chat(gatehouse, { token, requestId: 'streamed', stream: true })).text()
  const [outcome] = outcomesOf(await eventsOfRequest(gatehouse, 'streamed'), 'streamed')
  expect(outcome).toMatchObject({ details: { stream: true }, event_cost_attribution: { output_tokens: 7 } })
  expect(outcome?.details?.first_token_ms).toBeNumber()
})

test('two requests with the same request id are recorded as two exchanges', async () => {
  for (const _ of [1, 2]) await (await chat(gatehouse, { token, requestId: 'twice' })).text()
  const outcomes = await eventually(() => {
    const found = outcomesOf(eventsInLedger(gatehouse), 'twice')
    expect(found.length).toBe(2)
    return found
  })
  expect(new Set(outcomes.map(({ exchange_id }) => exchange_id)).size).toBe(2)
})

test('the same prompt has the same hash and another prompt another hash', async () => {
  const hashOf = async (requestId: string, text: string) => {
    await (await chat(gatehouse, { token, requestId, text })).text()
    return outcomesOf(await eventsOfRequest(gatehouse, requestId), requestId)[0]?.prompt_hash
  }
  const [first, same, other] = [await hashOf('h1', 'one'), await hashOf('h2', 'one'), await hashOf('h3', 'two')]
  expect(first).toBe(same ?? '')
  expect(first).not.toBe(other ?? '')
})

test('events come newest first, and the cursor reaches each of them once', async () => {
  const pages: string[][] = []
  let cursor: string | null = null
  do {
    const more: Record<string, string> = cursor === null ? {} : { cursor }
    const page = expectAnswer(await query({ since: startedAt, limit: '7', ...more }), 200, eventPage)
    pages.push(page.events.map(({ event_id }) => event_id))
    cursor = page.next_cursor
  } while (cursor !== null)
  const walked = pages.flat()
  expect(new Set(walked).size).toBe(walked.length)
  expect(pages.slice(0, -1).every(({ length }) => length === 7)).toBe(true)
  const atOnce = await eventsThroughApi(gatehouse, { since: startedAt })
  expect(walked).toEqual(atOnce.slice(-walked.length).map(({ event_id }) => event_id))
  const times = atOnce.map(({ timestamp }) => timestamp)
  expect(times).toEqual(times.toSorted().toReversed())
})

test('events that arrive meanwhile do not disturb a cursor', async () => {
  const first = expectAnswer(await query({ since: startedAt, limit: '5' }), 200, eventPage)
  await (await chat(gatehouse, { token, requestId: 'meanwhile' })).text()
  await eventsOfRequest(gatehouse, 'meanwhile')
  const second = await query({ since: startedAt, limit: '5', cursor: first.next_cursor ?? '' })
  const ids = expectAnswer(second, 200, eventPage).events.map(({ event_id }) => event_id)
  expect(ids.filter((id) => first.events.some(({ event_id }) => event_id === id))).toEqual([])
  expect(JSON.stringify(second.body)).not.toContain('meanwhile')
})

test('type, verdict and gateway filter the events', async () => {
  const { gatewayId } = await installation(gatehouse)
  const denied = await eventsThroughApi(gatehouse, { verdict: 'deny', event_type: 'gateway.request.outcome' })
  expect(denied.map(({ request_id }) => request_id).toSorted()).toEqual([0, 1, 2, 3, 4].map((n) => `denied-${n}`))
  expect(denied[0]).toMatchObject({ reason_code: 'tokens.model_not_allowed', details: { status: 403 } })
  const attempts = await eventsThroughApi(gatehouse, { event_type: 'gateway.provider.attempt' })
  expect(attempts.length).toBeGreaterThanOrEqual(12)
  expect(attempts.every(({ event_type }) => event_type === 'gateway.provider.attempt')).toBe(true)
  const ours = await eventsThroughApi(gatehouse, { gateway_id: gatewayId })
  expect(ours.every(({ event_attribution }) => event_attribution.gateway_id === gatewayId)).toBe(true)
  expect(await eventsThroughApi(gatehouse, { gateway_id: '018f0000-0000-7000-8000-000000000000' })).toEqual([])
})

test('since takes an instant and the units m, h, d and w, inclusive', async () => {
  for (const since of ['5m', '1h', '1d', '1w', startedAt, startedAt.replace('Z', '+00:00')]) {
    const page = expectAnswer(await query({ since }), 200, eventPage)
    expect([since, page.events.length > 0]).toEqual([since, true])
  }
  const [newest] = await eventsThroughApi(gatehouse)
  const page = expectAnswer(await query({ since: newest?.timestamp ?? '' }), 200, eventPage)
  expect(page.events.map(({ event_id }) => event_id)).toContain(newest?.event_id ?? '')
  const future = new Date(Date.now() + 3_600_000).toISOString()
  expect(expectAnswer(await query({ since: future }), 200, eventPage)).toEqual({ events: [], next_cursor: null })
})

test('an invalid query is 422 with the name of the parameter', async () => {
  const wrong: [Record<string, string>, string][] = [
    [{}, 'since'],
    [{ since: '' }, 'since'],
    [{ since: 'yesterday' }, 'since'],
    [{ since: '5y' }, 'since'],
    [{ since: '-5m' }, 'since'],
    [{ since: '1.5h' }, 'since'],
    [{ since: '2026-13-01T00:00:00Z' }, 'since'],
    [{ since: '5m', limit: '0' }, 'limit'],
    [{ since: '5m', limit: '101' }, 'limit'],
    [{ since: '5m', limit: 'many' }, 'limit'],
    [{ since: '5m', verdict: 'perhaps' }, 'verdict'],
  ]
  for (const [parameters, param] of wrong) {
    const { error } = expectAnswer(await query(parameters), 422, errorAnswer)
    expect([parameters, error.type, error.param]).toEqual([parameters, 'invalid_request_error', param])
  }
})

test('a cursor is valid only with its filters', async () => {
  const page = expectAnswer(await query({ since: '1h', limit: '2' }), 200, eventPage)
  const cursor = page.next_cursor ?? ''
  const wrong = [
    { since: '1h', limit: '2', cursor, verdict: 'deny' },
    { since: '1h', cursor: 'made-up' },
  ]
  for (const parameters of wrong) {
    expect(expectAnswer(await query(parameters), 422, errorAnswer).error.code).toBe('invalid_cursor')
  }
})

test('the export gives every event of the window, oldest first, as JSON like the query and as CSV', async () => {
  const json = await api(gatehouse, '/v1/events/export?since=1h&format=json')
  const { events } = expectAnswer(json, 200, z.object({ events: z.array(event) }))
  const ids = events.map(({ event_id }) => event_id)
  expect(ids).toEqual((await eventsThroughApi(gatehouse)).map(({ event_id }) => event_id).toReversed())
  const csv = await api(gatehouse, '/v1/events/export?since=1h&format=csv')
  const [header, ...rows] = String(csv.body).trimEnd().split('\r\n')
  expect(header).toBe('event_id,timestamp,event_type,request_id,verdict,reason_code,config_version')
  expect(rows.map((row) => row.split(',')[0])).toEqual(ids)
  for (const [query, param] of Object.entries({
    'since=1h': 'format',
    'since=1h&format=xml': 'format',
    'format=csv': 'since',
  })) {
    const { error } = expectAnswer(await api(gatehouse, `/v1/events/export?${query}`), 422, errorAnswer)
    expect([query, error.param]).toEqual([query, param])
  }
})

test('a member token without a team reads only its own events and may not export', async () => {
  const { id, token_value } = await createToken(gatehouse)
  await (await chat(gatehouse, { token: token_value, requestId: 'of-its-own' })).text()
  await until('its event can be read', async () => (await eventsOfRequest(gatehouse, 'of-its-own')).length > 0)
  const { events } = expectAnswer(await api(gatehouse, '/v1/events?since=5m', { token: token_value }), 200, eventPage)
  expect(events.map(({ event_type }) => event_type)).toContain('gateway.request.outcome')
  expect(new Set(events.map(({ event_attribution }) => event_attribution.token_id))).toEqual(new Set([id]))
  const refused = await api(gatehouse, '/v1/events/export?since=5m&format=csv', { token })
  const { error } = expectAnswer(refused, 403, errorAnswer)
  expect(error.code).toBe('permission_denied')
  expect(error.message).toContain('events:export')
})

test('a refusal before the token is known is recorded', async () => {
  await (await chat(gatehouse, { token: 'gth_nothing', requestId: 'nobody' })).text()
  const [outcome] = outcomesOf(await eventsOfRequest(gatehouse, 'nobody'), 'nobody')
  expect(outcome).toMatchObject({
    verdict: 'deny',
    reason_code: 'invalid_api_token',
    event_attribution: { token_id: null, team_id: null },
    details: { status: 401 },
  })
})

test('a hundred concurrent requests leave a hundred outcomes and a hundred attempts', async () => {
  const ids = Array.from({ length: 100 }, (_, index) => `at-once-${index}`)
  await Promise.all(ids.map(async (requestId) => (await chat(gatehouse, { token, requestId })).arrayBuffer()))
  await eventually(() => {
    const events = eventsInLedger(gatehouse).filter(({ request_id }) => request_id?.startsWith('at-once-'))
    const count = (type: string) => events.filter(({ event_type }) => event_type === type).length
    expect([count('gateway.request.outcome'), count('gateway.provider.attempt')]).toEqual([100, 100])
  })
})

test('events tail prints a page as JSON and as text lines', async () => {
  const json = await operate(gatehouse, 'events', 'tail', '--since', '1h', '--limit', '3', '--json')
  expect([json.code, json.stderr]).toEqual([0, ''])
  expect(eventPage.parse(JSON.parse(json.stdout)).events.length).toBe(3)
  const text = await operate(gatehouse, 'events', 'tail', '--since', '1h', '--event-type', 'gateway.request.outcome')
  expect(text.code).toBe(0)
  const line = text.stdout.split('\n')[0] ?? ''
  expect(line.split(/\s+/)).toEqual(['-', 'gateway.request.outcome', expect.any(String), '-', '-'])
})

test('events tail --follow prints the window and then each new event once, as one JSON object a line', async () => {
  const args = ['events', 'tail', '--since', '1h', '--follow', '--follow-interval-secs', '1', '--json']
  const tail = Bun.spawn([await executable(), ...args], {
    env: cleanEnvironment({ SERVICE_API_URL: gatehouse.baseUrl, SERVICE_API_TOKEN: gatehouse.adminToken }),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'ignore',
  })
  try {
    const stdout = collect(tail.stdout)
    await until('the window is printed', () => stdout().includes('allowed-0'))
    await (await chat(gatehouse, { token, requestId: 'followed' })).text()
    await until('the new events are printed', () => stdout().split('followed').length > 2)
    const lines = stdout()
      .split('\n')
      .filter((line) => line !== '')
    const ids = lines.map((line) => event.parse(JSON.parse(line)).event_id)
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.length).toBe((await eventsThroughApi(gatehouse)).length)
  } finally {
    tail.kill()
    await tail.exited
  }
})

test('events tail accepts the names of verdicts and refuses others', async () => {
  const denied = await operate(gatehouse, 'events', 'tail', '--since', '1h', '--verdict', 'Denied', '--json')
  expect(denied.code).toBe(0)
  const { events } = eventPage.parse(JSON.parse(denied.stdout))
  expect(events.length).toBeGreaterThanOrEqual(5)
  expect(events.every(({ verdict }) => verdict === 'deny')).toBe(true)
  const unknown = await operate(gatehouse, 'events', 'tail', '--since', '1h', '--verdict', 'perhaps')
  expect(unknown.code).toBe(2)
  for (const name of ['allowed', 'blocked', 'denied', 'redacted', 'rewritten', 'escalated', 'rate_limited']) {
    expect(unknown.stderr).toContain(name)
  }
})

test('events tail says on standard output when there are no events', async () => {
  const since = new Date(Date.now() + 3_600_000).toISOString()
  const ran = await operate(gatehouse, 'events', 'tail', '--since', since)
  expect(ran).toEqual({ code: 0, stdout: 'No events found\n', stderr: '' })
})

test('the metrics count requests without an identity in their labels', async () => {
  let text = ''
  await until('the gateway has counted', async () => {
    text = await (await fetch(`${gatehouse.gatewayUrl}/metrics`)).text()
    return /_total\{?.*\S \d*[1-9]/.test(text)
  })
  for (const name of [tokenId, 'allowed-1', 'the-story']) expect(text).not.toContain(name)
})

/** Who reads which events, in queries, follow and exports, and what the filters find. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { type FakeUpstream, startFakeUpstream } from '../fakes/upstream.ts'
import { type Event, errorAnswer, event, eventPage } from '../support/answers.ts'
import { api, chat, createToken, expectAnswer, installation } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type Gatehouse, operate, startGatehouse } from '../support/harness.ts'

setDefaultTimeout(120_000)

const owner = { email: 'owner@example.com', name: 'Olga', password: 'a long enough secret 1' }
const auditor = { email: 'auditor@example.com', name: 'Aud', password: 'another long secret 2' }
const followed = eventPage.extend({ follow: z.string() })
const exported = z.object({ events: z.array(event) })
const identified = z.looseObject({ id: z.uuid() })

let upstream: FakeUpstream
let gatehouse: Gatehouse
let teamId: string
/** Headers of each caller that sees every event, and of one that sees a team's. */
const callers: Record<string, Record<string, string>> = {}
let ofTeam: Record<string, string>

beforeAll(async () => {
  upstream = await startFakeUpstream()
  gatehouse = await startGatehouse({ upstream })
  teamId = (await installation(gatehouse)).teamId
  for (const role of ['owner', 'admin', 'auditor']) {
    callers[`a token with the role ${role}`] = await tokenHeaders({ roles: [role] })
  }
  ofTeam = await tokenHeaders({ roles: ['auditor'], bindings: { team_id: teamId } })
  const secret = new URL(gatehouse.ready.setup_url ?? '').hash.slice(1)
  await post('/v1/auth/setup', { secret, ...owner })
  expectAnswer(await api(gatehouse, '/v1/users', { body: { ...auditor, role: 'auditor' } }), 201, identified)
  callers["an auditor's session"] = await sessionHeaders(auditor)
  callers["an owner's session"] = await sessionHeaders(owner)
  const builder = await createToken(gatehouse, { name: 'Builder', bindings: { team_id: teamId } })
  for (const requestId of ['built-1', 'built-2']) {
    await (await chat(gatehouse, { token: builder.token_value, requestId })).text()
  }
  await eventually(async () => {
    const { events } = await read(callers["an owner's session"] ?? {}, 'since=1h&token=Builder')
    expect(events.filter(({ event_type }) => event_type === 'gateway.request.outcome')).toHaveLength(2)
  })
}, 240_000)
afterAll(async () => {
  await gatehouse?.stop()
  await upstream?.close()
})

const tokenHeaders = async (fields: object) => ({
  authorization: `Bearer ${(await createToken(gatehouse, fields)).token_value}`,
})

const post = (path: string, body: object): Promise<Response> =>
  fetch(`${gatehouse.baseUrl}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: gatehouse.baseUrl, 'sec-fetch-site': 'same-origin' },
    body: JSON.stringify(body),
  })

async function sessionHeaders({ email, password }: { email: string; password: string }) {
  const answer = await post('/v1/auth/login', { email, password })
  expect(answer.status).toBe(200)
  return { cookie: answer.headers.get('set-cookie')?.split(';')[0] ?? '', 'sec-fetch-site': 'same-origin' }
}

const ask = (headers: Record<string, string>, path: string) => api(gatehouse, path, { token: null, headers })

/** All pages of a query, or of what arrived since a cursor was given. */
async function read(headers: Record<string, string>, query: string, begun?: string) {
  const events: Event[] = []
  for (let cursor = begun; ; ) {
    const path = `/v1/events?${query}${cursor === undefined ? '' : `&cursor=${cursor}`}`
    const page = expectAnswer(await ask(headers, path), 200, followed)
    events.push(...page.events)
    if (page.next_cursor === null) return { events, follow: page.follow }
    cursor = page.next_cursor
  }
}

const typesWithoutTeam = (events: readonly Event[]) =>
  new Set(events.filter(({ event_attribution: who }) => who.team_id === null).map(({ event_type }) => event_type))

test.each([
  'a token with the role owner',
  'a token with the role admin',
  'a token with the role auditor',
  "an auditor's session",
  "an owner's session",
])('%s reads events without a team, in queries, follow and exports', async (who) => {
  const headers = callers[who] ?? {}
  const { events, follow } = await read(headers, 'since=1h')
  expect(typesWithoutTeam(events)).toContain('auth.signed_in')
  expect(typesWithoutTeam(events)).toContain('member.created')
  expect(events.some(({ event_attribution: { team_id } }) => team_id === teamId)).toBe(true)
  const name = `Seen by ${who}`
  const team = expectAnswer(await api(gatehouse, '/v1/teams', { body: { name } }), 201, identified)
  const arrived = await read(headers, 'since=1h', follow)
  expect(arrived.events).toContainEqual(
    expect.objectContaining({
      event_type: 'member.team_created',
      details: expect.objectContaining({ team_id: team.id }),
    }),
  )
  const { events: all } = expectAnswer(await ask(headers, '/v1/events/export?since=1h&format=json'), 200, exported)
  expect(typesWithoutTeam(all)).toContain('auth.signed_in')
  const csv = await ask(headers, '/v1/events/export?since=1h&format=csv')
  expect(String(csv.body)).toContain('auth.signed_in')
})

test("an auditor's token of a team sees that team's events and none without a team", async () => {
  const { events, follow } = await read(ofTeam, 'since=1h')
  expect(new Set(events.map(({ event_attribution: { team_id } }) => team_id))).toEqual(new Set([teamId]))
  expectAnswer(await api(gatehouse, '/v1/teams', { body: { name: 'Not for all' } }), 201, identified)
  expect(
    (await read(ofTeam, 'since=1h', follow)).events.filter(({ event_type }) => event_type.startsWith('member.')),
  ).toEqual([])
  const { events: all } = expectAnswer(await ask(ofTeam, '/v1/events/export?since=1h&format=json'), 200, exported)
  expect(typesWithoutTeam(all)).toEqual(new Set())
  const { error } = expectAnswer(await ask(ofTeam, '/v1/events?since=1h&team=Not%20for%20all'), 422, errorAnswer)
  expect(error).toMatchObject({ param: 'team', code: 'invalid_parameter' })
})

test.each<[query: string, types: string[]]>([
  ['token=Builder&status=2xx', ['gateway.provider.attempt', 'gateway.request.outcome']],
  ['token=Builder&min_latency_ms=0&event_type=gateway.request.outcome', ['gateway.request.outcome']],
  ['token=Builder&min_latency_ms=900000', []],
  ['token=Builder&min_cost=1000', []],
  ['token=Builder&provider=openai', ['gateway.provider.attempt', 'gateway.request.outcome']],
  ['token=Builder&reason_text=nothing-like-it', []],
  ['user=auditor@example.com&event_type=auth.signed_in', ['auth.signed_in']],
])('?%s finds only what it says', async (query, types) => {
  const { events } = await read(callers["an owner's session"] ?? {}, `since=1h&${query}`)
  expect([...new Set(events.map(({ event_type }) => event_type))].toSorted()).toEqual(types)
})

test('the command line takes the same filters, and columns for exports', async () => {
  const tail = await operate(
    gatehouse,
    'events',
    'tail',
    '--since',
    '1h',
    '--token',
    'Builder',
    '--status',
    '2xx',
    '--json',
  )
  expect([tail.code, tail.stderr]).toEqual([0, ''])
  expect(eventPage.parse(JSON.parse(tail.stdout)).events).toHaveLength(4)
  const flags = ['--format', 'csv', '--columns', 'model,tokens,policy', '--token', 'Builder', '--event-type']
  const csv = await operate(gatehouse, 'events', 'export', '--since', '1h', ...flags, 'gateway.request.outcome')
  const [header, ...rows] = csv.stdout.trimEnd().split('\r\n')
  expect(header).toEndWith(',config_version,model,input_tokens,output_tokens,policy_ids')
  expect(rows.map((row) => row.split(',').slice(7))).toEqual([
    ['fake-model', '11', '7', ''],
    ['fake-model', '11', '7', ''],
  ])
  const unknown = await operate(gatehouse, 'events', 'tail', '--since', '1h', '--team', 'Nobody')
  expect(unknown.code).toBe(1)
  expect(unknown.stderr).toContain('team')
})

test('a member learns what the events of the team mention, and which of it the member may open', async () => {
  const member = { email: 'member@example.com', name: 'Mel', password: 'another long secret 3' }
  const colleague = { email: 'colleague@example.com', name: 'Sam', password: 'another long secret 4' }
  const join = async (person: typeof member): Promise<string> => {
    const made = await api(gatehouse, '/v1/users', { body: { ...person, role: 'member' } })
    const { id } = expectAnswer(made, 201, identified)
    await api(gatehouse, `/v1/teams/${teamId}/members`, { body: { user_id: id } })
    return id
  }
  const userId = await join(member)
  await join(colleague)
  const policy = expectAnswer(
    await api(gatehouse, '/v1/policies', {
      body: {
        ...{
          name: 'No pears',
          kind: 'term-filter',
          stages: ['pre_request'],
          config: { terms: ['pear'], action: 'block' },
        },
        targets: { teams: [teamId] },
      },
    }),
    201,
    identified,
  )
  const own = await createToken(gatehouse, { name: 'Own', bindings: { team_id: teamId, user_id: userId } })
  const other = await createToken(gatehouse, { name: 'Of another', bindings: { team_id: teamId } })
  const headers = await sessionHeaders(member)
  const named = followed.extend({
    names: z.array(z.object({ kind: z.string(), id: z.string(), name: z.string(), readable: z.boolean() })),
  })
  const { names } = await eventually(async () => {
    for (const { token_value: token } of [own, other]) await (await chat(gatehouse, { token, text: 'a pear' })).text()
    const page = expectAnswer(await ask(headers, '/v1/events?since=1h&verdict=block&names=true'), 200, named)
    expect(new Set(page.events.map(({ event_attribution: { token_id } }) => token_id))).toEqual(
      new Set([own.id, other.id]),
    )
    return page
  })
  const expected = [
    { kind: 'token', id: own.id, name: 'Own', readable: true },
    { kind: 'token', id: other.id, name: 'Of another', readable: false },
    { kind: 'team', id: teamId, name: 'default', readable: false },
    { kind: 'user', id: userId, name: 'Mel', readable: false },
    { kind: 'policy', id: policy.id, name: 'No pears', readable: false },
  ]
  expect(names).toHaveLength(expected.length)
  expect(names).toEqual(expect.arrayContaining(expected))
  // People are named only to those who may read them.
  const path = '/v1/events?since=1h&verdict=block&names=true'
  const seen = expectAnswer(await ask(await sessionHeaders(colleague), path), 200, named)
  expect(seen.names.map(({ kind }) => kind)).not.toContain('user')
})

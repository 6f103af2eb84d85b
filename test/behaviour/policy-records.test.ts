import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { api, createToken, expectAnswer } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type Gatehouse, operate, startGatehouse } from '../support/harness.ts'
import { eventsInLedger } from '../support/recorded.ts'

setDefaultTimeout(120_000)

let gatehouse: Gatehouse
beforeAll(async () => {
  gatehouse = await startGatehouse()
}, 240_000)
afterAll(() => gatehouse?.stop())

const record = z.looseObject({ id: z.uuid(), name: z.string(), version: z.number(), order: z.number() })
const terms = (name: string, change: object = {}) => ({
  name,
  kind: 'term-filter',
  stages: ['pre_request'],
  config: { terms: ['swordfish'], action: 'block' },
  ...change,
})
const make = async (body: object) => expectAnswer(await api(gatehouse, '/v1/policies', { body }), 201, record)
const file = (name: string, text: string): string => {
  const path = join(gatehouse.dataDirectory, name)
  writeFileSync(path, text)
  return path
}

test('a policy is created, read, changed under its current version and deleted, each with an event', async () => {
  const made = await make(terms('life of one'))
  expect(made).toMatchObject({ mode: 'enforce', when_broken: 'deny', enabled: true, when: null, targets: {} })
  const read = await api(gatehouse, `/v1/policies/${made.id}`)
  expect(read.headers.get('etag')).toBe(`"${made.version}"`)
  const headers = { 'if-match': `"${made.version}"` }
  const body = { mode: 'monitor', when: 'request.stream' }
  const change = () => api(gatehouse, `/v1/policies/${made.id}`, { method: 'PATCH', body, headers })
  const changed = expectAnswer(await change(), 200, record)
  expect(changed).toMatchObject({ mode: 'monitor', when: 'request.stream', config: { terms: ['swordfish'] } })
  expect(changed.version).toBeGreaterThan(made.version)
  expect((await change()).status).toBe(412)
  expect((await api(gatehouse, `/v1/policies/${made.id}`, { method: 'DELETE' })).status).toBe(200)
  expect((await api(gatehouse, `/v1/policies/${made.id}`)).status).toBe(404)
  const events = eventsInLedger(gatehouse).filter(({ details }) => details?.policy_id === made.id)
  expect(events.map(({ event_type }) => event_type)).toEqual(['policy.created', 'policy.updated', 'policy.deleted'])
  expect(events[1]).toMatchObject({ details: { changes: { mode: { from: 'enforce', to: 'monitor' } } } })
  expect(events.map(({ config_version }) => config_version)).toEqual(
    events.map(({ config_version }) => config_version).toSorted((one, other) => one - other),
  )
  expect(new Set(events.map(({ config_version }) => config_version)).size).toBe(3)
})

const refusals: [string, object, string][] = [
  ['an unknown kind', terms('x', { kind: 'magic' }), 'kind'],
  ['a config of another form', terms('x', { config: { terms: [5], action: 'block' } }), 'config.terms.0'],
  ['an unknown field of the config', terms('x', { config: { terms: ['a'], action: 'block', more: 1 } }), 'config.more'],
  ['an unknown field', terms('x', { more: 1 }), 'more'],
  ['no stage', terms('x', { stages: [] }), 'stages'],
  [
    'a stage that the kind lacks',
    { name: 'x', kind: 'model-access', stages: ['pre_response'], config: {} },
    'stages.0',
  ],
  ['a condition that does not parse', terms('x', { when: 'request.model ==' }), 'when'],
  ['a condition of another type', terms('x', { when: 'request.model == 5' }), 'when'],
  [
    'a condition that is missing',
    { name: 'x', kind: 'escalate', stages: ['pre_request'], config: { reason_code: 'a' } },
    'when',
  ],
  ['targets of another form', terms('x', { targets: { teams: ['red'] } }), 'targets.teams.0'],
  ['an unknown list of targets', terms('x', { targets: { people: [] } }), 'targets.people'],
  [
    'a pattern without a bound',
    terms('x', {
      kind: 'pattern-filter',
      stages: ['pre_response'],
      config: { patterns: [{ name: 'a', pattern: 'a+' }], action: 'block' },
    }),
    'config.patterns.0.pattern',
  ],
  [
    'a webhook with a password',
    terms('x', { kind: 'webhook', config: { url: 'http://u:p@example.com/' } }),
    'config.url',
  ],
  ['a name that is too long', terms('x'.repeat(10_000)), 'name'],
]

test.each(refusals)('%s is refused with the name of the field', async (_, body, param) => {
  const answer = await api(gatehouse, '/v1/policies', { body })
  expect([answer.status, answer.body]).toMatchObject([422, { error: { param } }])
})

test('a policy name is unique, may hold quotes and may not hold control characters', async () => {
  const name = `Robert'); drop table policies;--`
  await make(terms(name))
  const again = await api(gatehouse, '/v1/policies', { body: terms(name) })
  expect([again.status, again.body]).toMatchObject([409, { error: { param: 'name' } }])
  const rung = await api(gatehouse, '/v1/policies', { body: terms('a bell \u0007') })
  expect([rung.status, rung.body]).toMatchObject([422, { error: { param: 'name' } }])
})

test('policies keep the order they are put into, and an order must name each of them', async () => {
  const [first, second] = [await make(terms('first')), await make(terms('second', { order: 1 }))]
  const page = z.object({ policies: z.array(record), next_cursor: z.string().nullable() })
  const list = async () => expectAnswer(await api(gatehouse, '/v1/policies'), 200, page).policies.map(({ id }) => id)
  const ids = await list()
  expect(ids.indexOf(second.id)).toBeLessThan(ids.indexOf(first.id))
  const put = (policy_ids: string[]) => api(gatehouse, '/v1/policies/order', { method: 'PUT', body: { policy_ids } })
  expect((await put([first.id])).status).toBe(409)
  expect((await put(ids.toReversed())).status).toBe(200)
  expect(await list()).toEqual(ids.toReversed())
  const half = expectAnswer(await api(gatehouse, '/v1/policies?limit=1'), 200, page)
  const rest = expectAnswer(await api(gatehouse, `/v1/policies?limit=100&cursor=${half.next_cursor}`), 200, page)
  expect([...half.policies, ...rest.policies].map(({ id }) => id)).toEqual(await list())
})

test('a token names existing policies, and a clone may add policies but not remove any', async () => {
  const [one, two] = [await make(terms('for a token')), await make(terms('for its clone'))]
  const source = await createToken(gatehouse, { policy_ids: [one.id] })
  expect(source.policies).toEqual([{ id: one.id, name: 'for a token' }])
  const clone = (policy_ids: string[]) => api(gatehouse, `/v1/tokens/${source.id}/clone`, { body: { policy_ids } })
  expect((await clone([one.id, two.id])).body).toMatchObject({ policies: [{ id: one.id }, { id: two.id }] })
  expect((await clone([two.id])).body).toMatchObject({ error: { code: 'token_scope_widened', param: 'policy_ids' } })
  const body = { name: 'x', purpose: 'general', policy_ids: [crypto.randomUUID()] }
  expect((await api(gatehouse, '/v1/tokens', { body })).body).toMatchObject({ error: { param: 'policy_ids' } })
})

test('a reader of policies cannot change them, and others cannot read them', async () => {
  const auditor = await createToken(gatehouse, { roles: ['auditor'] })
  const member = await createToken(gatehouse)
  expect((await api(gatehouse, '/v1/policies', { token: auditor.token_value })).status).toBe(200)
  expect((await api(gatehouse, '/v1/policies', { token: auditor.token_value, body: terms('x') })).status).toBe(403)
  expect((await api(gatehouse, '/v1/policies', { token: member.token_value })).status).toBe(403)
})

test('the API description shows the config of every kind', async () => {
  const { body } = await api(gatehouse, '/v1/openapi.json')
  const made = z
    .looseObject({ paths: z.record(z.string(), z.looseObject({ post: z.unknown().optional() })) })
    .parse(body)
  const text = JSON.stringify(made.paths['/v1/policies']?.post)
  for (const kind of ['term-filter', 'pii', 'webhook', 'condition', 'json-schema'])
    expect(text).toContain(`"const":"${kind}"`)
})

test('policies are tried on a request and an answer, and nothing is stored', async () => {
  const before = eventsInLedger(gatehouse).length
  const request = { model: 'm', messages: [{ role: 'user', content: 'ann@example.com says swordfish' }] }
  const policies = [
    { name: 'mail', kind: 'pii', stages: ['pre_request'], config: { types: ['email'], action: 'redact' } },
    terms('looked at', { mode: 'monitor' }),
  ]
  const tried = await api(gatehouse, '/v1/policies/test', { body: { policies, request } })
  expect([tried.status, tried.body]).toMatchObject([
    200,
    {
      verdict: 'redact',
      family: 'chat',
      findings: [
        { name: 'mail', verdict: 'redact', stage: 'pre_request' },
        { name: 'looked at', verdict: 'block', mode: 'monitor' },
      ],
      request: { messages: [{ content: '[EMAIL] says swordfish' }] },
    },
  ])
  expect(eventsInLedger(gatehouse)).toHaveLength(before)
  const system = await api(gatehouse, '/v1/policies/test', {
    body: { policies: [policies[0]], request: { ...request, max_tokens: 5, system: 'Ask anna@example.com' } },
  })
  expect(system.body).toMatchObject({ family: 'messages', request: { system: 'Ask [EMAIL]' } })
  const generationConfig = { maxOutputTokens: 5000 }
  const contents = [{ role: 'user', parts: [{ text: 'Ask anna@example.com' }] }]
  const limit = { name: 'short', kind: 'request-limits', stages: ['pre_request'], config: { max_output_tokens: 100 } }
  const gemini = await api(gatehouse, '/v1/policies/test', {
    body: { policies: [policies[0], limit], request: { model: 'm', contents, generationConfig } },
  })
  expect(gemini.body).toMatchObject({
    verdict: 'deny',
    family: 'gemini',
    findings: [{ name: 'mail' }, { name: 'short', verdict: 'deny' }],
    request: { model: 'm', contents: [{ parts: [{ text: 'Ask [EMAIL]' }] }], generationConfig },
  })
  const wrong = { policies: [terms('x', { when: 'nonsense' })], request }
  expect((await api(gatehouse, '/v1/policies/test', { body: wrong })).body).toMatchObject({
    error: { param: 'policies.0.when' },
  })
})

test('a policy is replayed over recorded requests and reports which ones need text that was not recorded', async () => {
  const { token_value } = await createToken(gatehouse)
  await fetch(`${gatehouse.gatewayUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token_value}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'simulator/echo', messages: [{ role: 'user', content: 'hello' }] }),
  })
  const byModel = await make({
    name: 'by model',
    kind: 'condition',
    stages: ['pre_request'],
    mode: 'monitor',
    when: 'request.model == "simulator/echo"',
    config: { verdict: 'deny', reason_code: 'test.model' },
  })
  const byText = await make(terms('by text', { mode: 'monitor' }))
  const replay = (id: string) => api(gatehouse, `/v1/policies/${id}/replay`, { body: { since: '1h' } })
  await eventually(async () => expect((await replay(byModel.id)).body).toMatchObject({ examined: 1 }))
  expect((await replay(byModel.id)).body).toMatchObject({
    examined: 1,
    matched: 1,
    verdicts: { deny: 1 },
    undecided: 0,
  })
  expect((await replay(byText.id)).body).toMatchObject({ examined: 1, matched: 1, verdicts: {}, undecided: 1 })
  expect((await replay(byText.id)).body).toMatchObject({ unreplayed: { text_not_recorded: 1 } })
})

test('apply shows the changes of a policy file, makes them, and then has nothing to do', async () => {
  const yaml = `policies:
  - name: from a file
    kind: term-filter
    stages: [pre_request]
    config: { terms: [swordfish], action: block }
  - name: first
    kind: term-filter
    stages: [pre_request]
    mode: monitor
    config: { terms: [swordfish], action: block }
`
  const path = file('policies.yaml', yaml)
  const shown = await operate(gatehouse, 'apply', '-f', path, '--dry-run')
  expect(shown).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      /^\+ policy from a file\n( {4}\+ .*\n)+~ policy first\n {4}mode: "enforce" -> "monitor"\n$/,
    ),
  })
  expect((await operate(gatehouse, 'policy', 'list')).stdout).not.toContain('from a file')
  expect((await operate(gatehouse, 'policy', 'apply', '-f', path)).code).toBe(0)
  expect((await operate(gatehouse, 'apply', '-f', path)).stdout).toBe('= policy from a file\n= policy first\n')
  const wrong = file('wrong.yaml', 'policies:\n  - name: x\n')
  expect((await operate(gatehouse, 'apply', '-f', wrong)).code).toBe(2)
  expect((await operate(gatehouse, 'apply', '-f', path, '--prune')).code).toBe(2)
  const request = file('request.json', '{"model":"m","messages":[{"role":"user","content":"swordfish"}]}')
  expect((await operate(gatehouse, 'policy', 'test', '-f', path, '--request', request)).stdout).toContain(
    'Verdict: block (policy.term_filter)',
  )
})

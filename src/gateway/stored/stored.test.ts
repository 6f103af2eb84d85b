/** Stored responses and conversations through the official client: ids, owners, policies, refusals and records. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { StoredResponses } from '../../../test/fakes/stored-responses.ts'
import { compilePolicySet } from '../../policies/chain.ts'
import type { GovernedToken } from '../../tokens/governed-token.ts'
import { startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { openSocket } from '../testing/socket.ts'
import { testModel, testPolicy, testProvider } from '../testing/worker.ts'

let running: TestGateway
let store: StoredResponses
let openai: OpenAI

const clientOf = (secret: string) => new OpenAI({ apiKey: secret, baseURL: `${running.url}/v1`, maxRetries: 0 })
const clientFor = (members: Partial<GovernedToken>) => clientOf(running.worker.addToken(members))

beforeAll(async () => {
  running = await startTestGateway((request, body) => store.answer(request, body), {
    path_retries: 0,
    drain_seconds: 0,
  })
  const baseUrl = `${running.worker.upstreams[0]?.baseUrl}`
  running.worker.upstreams.length = 0
  running.worker.upstreams.push(
    testProvider({ id: 'first', name: 'first', baseUrl }),
    testProvider({ id: 'second', name: 'second', baseUrl, apiKey: 'sk-second' }),
    testProvider({ id: 'sim', name: 'sim', kind: 'simulator', allowUnlistedModels: false }),
    testProvider({ id: 'other', name: 'other', kind: 'anthropic', baseUrl, allowUnlistedModels: false }),
  )
  running.worker.catalog.push(
    testModel({ id: 'of-second', providerId: 'second', upstreamModel: 'up-second' }),
    testModel({ id: 'simulated', providerId: 'sim', upstreamModel: 'simulator/echo' }),
    testModel({ id: 'claude', providerId: 'other', upstreamModel: 'up-claude' }),
  )
})
afterAll(() => running.stop())
beforeEach(() => {
  store = new StoredResponses()
  openai = clientOf(running.secret)
  running.seen.length = 0
  running.worker.policies = compilePolicySet([])
})

const create = (members: object = {}) =>
  openai.responses.create({ model: 'gpt', input: 'Good morning', stream: false, ...members })
const lastSeen = () => running.seen.at(-1)
const sentTo = () => lastSeen()?.request.headers.get('authorization')
const lastOutcome = () => running.worker.journal.outcomes().at(-1)

/** The status and the error of a call that fails. */
async function refusal(call: Promise<unknown>): Promise<[number | undefined, string | null | undefined]> {
  try {
    await call
  } catch (thrown) {
    if (thrown instanceof OpenAI.APIError) return [thrown.status, thrown.code]
    throw thrown
  }
  throw new Error('The call was not refused')
}

describe('a stored response', () => {
  test('has a sealed id, by which it is read, cancelled, listed and deleted at its provider', async () => {
    const made = await create()
    const [[id = '']] = [[...store.responses.keys()]]
    expect(made.id).toMatch(/^resp_[0-9a-f]+$/)
    expect(made.id).not.toContain(id.slice(5))
    const read = await openai.responses.retrieve(made.id)
    expect([read.id, read.output_text]).toEqual([made.id, 'Hello from the store'])
    expect(new URL(lastSeen()?.request.url ?? '').pathname).toBe(`/v1/responses/${id}`)
    expect(lastSeen()?.request.headers.get('content-type')).toBeNull()
    const items = await openai.responses.inputItems.list(made.id, { limit: 5, order: 'asc' })
    expect(items.data).toMatchObject([{ role: 'user', content: [{ text: 'Good morning' }] }])
    expect(new URL(lastSeen()?.request.url ?? '').search).toBe('?limit=5&order=asc')
    expect(await refusal(openai.responses.cancel(made.id))).toEqual([400, null])
    await openai.responses.delete(made.id)
    expect(store.responses.size).toBe(0)
    expect(await refusal(openai.responses.retrieve(made.id))).toEqual([404, null])
  })

  test('goes to the provider that made it, with its credential', async () => {
    const made = await create({ model: 'of-second' })
    expect(sentTo()).toBe('Bearer sk-second')
    await openai.responses.retrieve(made.id)
    expect(sentTo()).toBe('Bearer sk-second')
    // An unlisted model would go to the first provider.
    const next = await create({ previous_response_id: made.id })
    expect(sentTo()).toBe('Bearer sk-second')
    expect(next.previous_response_id).toBe(made.id)
    const [first = ''] = store.responses.keys()
    expect(JSON.parse(lastSeen()?.body ?? '').previous_response_id).toBe(first)
  })

  test('has the same sealed id in every frame of a stream and in the answer to GET', async () => {
    const ids = new Set<string>()
    let text = ''
    for await (const event of await openai.responses.create({ model: 'gpt', input: 'Hi', stream: true })) {
      if ('response' in event) ids.add(event.response.id)
      if (event.type === 'response.output_text.delta') text += event.delta
    }
    const [id = ''] = ids
    expect([ids.size, text]).toEqual([1, 'Hello from the store'])
    expect((await openai.responses.retrieve(id)).id).toBe(id)
    const again: string[] = []
    for await (const event of await openai.responses.retrieve(id, { stream: true, starting_after: 2 })) {
      again.push(event.type)
      if ('response' in event) expect(event.response.id).toBe(id)
    }
    expect(again).toEqual(['response.output_text.delta', 'response.output_item.done', 'response.completed'])
  })

  test('has a sealed id over a WebSocket too, which continues over HTTP', async () => {
    const socket = await openSocket(`${running.url.replace('http', 'ws')}/v1/responses/ws`, {
      authorization: `Bearer ${running.secret}`,
    })
    socket.send(JSON.stringify({ type: 'response.create', model: 'of-second', input: 'Hi' }))
    const [created = ''] = await socket.frames(6)
    socket.close()
    const { response } = JSON.parse(created)
    expect(response.id).toMatch(/^resp_[0-9a-f]{100,}$/)
    expect((await create({ previous_response_id: response.id })).previous_response_id).toBe(response.id)
    expect(sentTo()).toBe('Bearer sk-second')
  })

  test('counts as one request of a limit a minute when it is read', async () => {
    const { rates } = running.worker
    const { take } = rates
    let taken = 0
    rates.take = (demands, signal) => {
      taken += 1
      return take.call(rates, demands, signal)
    }
    const accounts = [{ id: 'a', maxRequests: null, maxBudget: null, rateLimitRpm: 5, rateLimitTpm: null }]
    try {
      const made = await create()
      await clientFor({ accounts }).responses.retrieve(made.id)
      expect(taken).toBe(1)
    } finally {
      rates.take = take
    }
  })

  test('keeps the bytes of an answer that is not stored', async () => {
    const made = await create({ store: false })
    expect(made.id).toMatch(/^resp_0001/)
  })

  test('is recorded with its route, model and provider, without cost', async () => {
    const made = await create({ model: 'of-second' })
    await openai.responses.retrieve(made.id)
    expect(lastOutcome()).toMatchObject({
      verdict: 'allow',
      details: { route: 'GET /v1/responses/{response_id}', model: 'of-second', provider: 'second', status: 200 },
    })
    expect(lastOutcome()?.event_cost_attribution).toBeUndefined()
    expect(lastOutcome()?.settlements).toBeUndefined()
  })
})

describe('an id of another', () => {
  const strangers: [string, Partial<GovernedToken>][] = [
    ['another team', { ownerId: 'team-other' }],
    ['a user with the id of the team', { ownerKind: 'user' }],
  ]
  for (const [who, members] of strangers) {
    test(`is unknown to ${who}, and no provider is asked`, async () => {
      const made = await create()
      const conversation = await openai.conversations.create()
      const stranger = clientFor(members)
      running.seen.length = 0
      const unknown = await refusal(stranger.responses.retrieve('resp_unknown'))
      expect(unknown).toEqual([404, 'stored_object_not_found'])
      expect(await refusal(stranger.responses.retrieve(made.id))).toEqual(unknown)
      expect(await refusal(stranger.responses.delete(made.id))).toEqual(unknown)
      expect(await refusal(stranger.responses.cancel(made.id))).toEqual(unknown)
      expect(await refusal(stranger.responses.inputItems.list(made.id))).toEqual(unknown)
      expect(await refusal(stranger.conversations.retrieve(conversation.id))).toEqual(unknown)
      const continued = stranger.responses.create({ model: 'gpt', input: '', previous_response_id: made.id })
      expect(await refusal(continued)).toEqual([400, 'previous_response_not_found'])
      const joined = stranger.responses.create({ model: 'gpt', input: '', conversation: conversation.id })
      expect(await refusal(joined)).toEqual(unknown)
      expect(running.seen).toEqual([])
    })
  }

  test('is known to another token of the same owner', async () => {
    const made = await create()
    expect((await clientFor({}).responses.retrieve(made.id)).id).toBe(made.id)
  })

  test('is refused as unknown when it was changed anywhere, or is the id of the provider', async () => {
    const made = await create()
    const [plain = ''] = store.responses.keys()
    running.seen.length = 0
    const changed = [...made.id.slice(5)].map((letter, at) => {
      const other = letter === 'a' ? 'b' : 'a'
      return `resp_${made.id.slice(5, 5 + at)}${other}${made.id.slice(6 + at)}`
    })
    const forms = [
      plain,
      `${made.id}a`,
      made.id.slice(0, -1),
      made.id.replace('resp_', 'conv_'),
      made.id.toUpperCase(),
      `resp_${'a'.repeat(5000)}`,
    ]
    for (const id of [...changed, ...forms]) {
      expect(await refusal(openai.responses.retrieve(id))).toEqual([404, 'stored_object_not_found'])
    }
    expect(await refusal(openai.conversations.retrieve(made.id.replace('resp_', 'conv_')))).toEqual([
      404,
      'stored_object_not_found',
    ])
    expect(running.seen).toEqual([])
  })

  test('is refused to a token that may not use its provider or model any more', async () => {
    const made = await create({ model: 'of-second' })
    const elsewhere = clientFor({ provider: 'first' })
    expect(await refusal(elsewhere.responses.retrieve(made.id))).toEqual([403, 'tokens.provider_not_allowed'])
    const narrow = clientFor({ modelFilter: ['gpt-*'] })
    expect(await refusal(narrow.responses.retrieve(made.id))).toEqual([403, 'tokens.model_not_allowed'])
    const reader = clientFor({ roles: ['auditor'] })
    expect((await refusal(reader.responses.retrieve(made.id)))[0]).toBe(403)
  })
})

describe('a provider that answers wrongly', () => {
  test('with another response is refused with 502', async () => {
    const made = await create()
    const other = await create()
    const [, foreign = ''] = store.responses.keys()
    store.lies = (body) => ({ ...body, id: foreign })
    expect((await refusal(openai.responses.retrieve(made.id)))[0]).toBe(502)
    expect((await refusal(openai.responses.delete(made.id)))[0]).toBe(502)
    expect((await openai.responses.retrieve(other.id)).id).toBe(other.id)
  })

  test('with an id that would leave its place in a path gets no sealed one, and is asked for none', async () => {
    const outside = '../../v1/files'
    store.lies = (body) => ({ ...body, id: outside, previous_response_id: '..', conversation: { id: 'a/../b' } })
    const made = await create()
    expect([made.id, made.previous_response_id, made.conversation?.id]).toEqual([outside, '..', 'a/../b'])
    running.seen.length = 0
    expect((await refusal(openai.responses.retrieve(made.id)))[0]).toBe(404)
    expect((await refusal(create({ conversation: 'a/../b' })))[0]).toBe(404)
    expect(running.seen).toEqual([])
    expect((await refusal(create({ background: true })))[0]).toBe(502)
  })

  test('without an id for a new conversation is refused with 502', async () => {
    store.lies = (body) => ({ ...body, id: undefined })
    expect((await refusal(openai.conversations.create()))[0]).toBe(502)
  })

  test('with an error shows no id of its own', async () => {
    const made = await create()
    const [id = ''] = store.responses.keys()
    store.responses.clear()
    const answer = await fetch(`${running.url}/v1/responses/${made.id}`, {
      headers: { authorization: `Bearer ${running.secret}` },
    })
    const text = await answer.text()
    expect(answer.status).toBe(404)
    expect(text).not.toContain(id)
    expect(text).toContain(made.id)
  })

  test('with a page larger than an answer may be is refused', async () => {
    const made = await create()
    const tooMuch = 'x'.repeat(64 * 1024 * 1024)
    store.lies = (body) => ({ ...body, data: [{ type: 'message', id: 'msg_1', content: tooMuch }] })
    expect((await refusal(openai.responses.inputItems.list(made.id)))[0]).toBe(502)
  })
})

describe('a conversation', () => {
  test('is made, used, changed and deleted, with its items', async () => {
    const made = await openai.conversations.create({
      metadata: { topic: 'demo' },
      items: [{ type: 'message', role: 'user', content: 'First' }],
    })
    expect(made.id).toMatch(/^conv_/)
    expect(made.metadata).toEqual({ topic: 'demo' })
    expect((await openai.conversations.retrieve(made.id)).id).toBe(made.id)
    expect(await openai.conversations.update(made.id, { metadata: { topic: 'new' } })).toMatchObject({
      id: made.id,
      metadata: { topic: 'new' },
    })
    const response = await create({ conversation: made.id })
    expect(response.conversation).toEqual({ id: made.id })
    expect((await openai.responses.retrieve(response.id)).conversation).toEqual({ id: made.id })
    const added = await openai.conversations.items.create(made.id, {
      items: [{ type: 'message', role: 'user', content: 'Second' }],
    })
    const [item] = added.data
    expect(added.data).toHaveLength(1)
    const texts: unknown[] = []
    for await (const each of openai.conversations.items.list(made.id, { limit: 1 })) texts.push(each.id)
    expect(texts).toHaveLength(3)
    const id = item?.id ?? ''
    expect(await openai.conversations.items.retrieve(id, { conversation_id: made.id })).toMatchObject({ id })
    expect(await openai.conversations.items.delete(id, { conversation_id: made.id })).toMatchObject({ id: made.id })
    expect(await openai.conversations.delete(made.id)).toMatchObject({ id: made.id, deleted: true })
  })

  test('is made by the provider of the named model, or else by the first that the token may use', async () => {
    await openai.conversations.create({ model: 'of-second' } as object)
    expect(sentTo()).toBe('Bearer sk-second')
    expect(lastSeen()?.body).toBe('{}')
    await openai.conversations.create()
    expect(sentTo()).toBe('Bearer sk-operator')
    await clientFor({ provider: 'second' }).conversations.create()
    expect(sentTo()).toBe('Bearer sk-second')
    expect(await refusal(clientFor({ provider: 'other' }).conversations.create())).toEqual([
      403,
      'tokens.provider_not_allowed',
    ])
    expect(await refusal(openai.conversations.create({ model: 'claude' } as object))).toEqual([
      501,
      'stored_responses_unsupported',
    ])
  })

  test('is refused for a model of another provider', async () => {
    const made = await openai.conversations.create()
    running.seen.length = 0
    expect(await refusal(create({ model: 'of-second', conversation: { id: made.id } }))).toEqual([
      422,
      'invalid_parameter',
    ])
    expect(running.seen).toEqual([])
  })

  test('takes no item id that would leave its place in a path', async () => {
    const { id } = await openai.conversations.create()
    running.seen.length = 0
    for (const item of ['%2e%2e', 'a%2Fb', 'msg_1%3Fx', '..%2f..']) {
      const answer = await fetch(`${running.url}/v1/conversations/${id}/items/${item}`, {
        headers: { authorization: `Bearer ${running.secret}` },
      })
      expect([item, answer.status]).toEqual([item, 404])
    }
    expect(running.seen).toEqual([])
  })
})

describe('a provider without stored responses', () => {
  test('is refused for background, and for compacting, in words that say so', async () => {
    const refused: [number, string] = [501, 'stored_responses_unsupported']
    for (const model of ['simulated', 'claude']) {
      expect(await refusal(create({ model, background: true }))).toEqual(refused)
      expect(await refusal(openai.responses.compact({ model, input: 'x' } as never))).toEqual(refused)
      expect(await refusal(openai.conversations.create({ model } as object))).toEqual(refused)
    }
    expect(running.seen).toEqual([])
  })
})

test('compacts a conversation at the provider of its model, and charges its usage', async () => {
  const compacted = await openai.responses.compact({ model: 'of-second', input: 'A long conversation' } as never)
  expect(compacted).toMatchObject({ object: 'response.compaction', output: [{ type: 'compaction' }] })
  expect(new URL(lastSeen()?.request.url ?? '').pathname).toBe('/v1/responses/compact')
  expect(JSON.parse(lastSeen()?.body ?? '')).toMatchObject({ model: 'up-second' })
  expect(lastOutcome()).toMatchObject({
    details: { route: 'POST /v1/responses/compact' },
    event_cost_attribution: { input_tokens: 11, output_tokens: 7 },
  })
})

describe('policies', () => {
  const email = 'anna@example.com'
  const redact = (members: object = {}) =>
    compilePolicySet([
      testPolicy({
        id: 'p',
        kind: 'pii',
        stages: ['post_request'],
        config: { action: 'redact', types: ['email'] },
        ...members,
      }),
    ])

  test('redact what is read back of a response, its input, its stream and its conversation', async () => {
    store.says = `Write to ${email}`
    const conversation = await openai.conversations.create({
      items: [{ type: 'message', role: 'user', content: `I am ${email}` }],
    })
    const made = await create({ conversation: conversation.id, input: `Ask ${email}` })
    running.worker.policies = redact()
    const items = await openai.conversations.items.list(conversation.id)
    const stream = await openai.responses.retrieve(made.id, { stream: true })
    const events: unknown[] = []
    for await (const event of stream) events.push(event)
    const item = await openai.conversations.items.retrieve(items.data[0]?.id ?? '', {
      conversation_id: conversation.id,
    })
    const read = [
      await openai.responses.retrieve(made.id),
      (await openai.responses.inputItems.list(made.id)).data,
      items.data,
      item,
      events,
    ]
    for (const each of read) {
      expect(JSON.stringify(each)).not.toContain(email)
      expect(JSON.stringify(each)).toContain('msg_')
    }
  })

  test('for one model apply to its responses, and to every conversation', async () => {
    store.says = `Write to ${email}`
    const conversation = await openai.conversations.create()
    const made = await create({ conversation: conversation.id })
    running.worker.policies = redact({ targets: { models: ['gpt'] } })
    expect(JSON.stringify(await openai.responses.retrieve(made.id))).not.toContain(email)
    expect(JSON.stringify((await openai.conversations.items.list(conversation.id)).data)).not.toContain(email)
    running.worker.policies = redact({ targets: { models: ['another'] } })
    expect(JSON.stringify(await openai.responses.retrieve(made.id))).toContain(email)
    expect(JSON.stringify((await openai.conversations.items.list(conversation.id)).data)).not.toContain(email)
  })

  test('block a stored answer, which then shows nothing of its text', async () => {
    store.says = 'The plan is falcon'
    const made = await create()
    running.worker.policies = compilePolicySet([
      testPolicy({
        id: 'p',
        kind: 'term-filter',
        stages: ['pre_response'],
        config: { terms: ['falcon'], action: 'block' },
      }),
    ])
    const answer = await fetch(`${running.url}/v1/responses/${made.id}`, {
      headers: { authorization: `Bearer ${running.secret}` },
    })
    expect(answer.status).toBeGreaterThanOrEqual(400)
    expect(await answer.text()).not.toContain('falcon')
  })

  test('redact items before they are stored, and add no members to their request', async () => {
    const { id } = await openai.conversations.create()
    running.worker.policies = compilePolicySet([
      testPolicy({ id: 'p', kind: 'pii', config: { action: 'redact', types: ['email'] } }),
      testPolicy({ id: 'q', kind: 'request-rewrite', config: { system_prefix: 'Be kind', set: { top_p: 1 } } }),
    ])
    await openai.conversations.items.create(id, {
      items: [{ type: 'message', role: 'user', content: `I am ${email}` }],
    })
    expect(lastSeen()?.body).not.toContain(email)
    expect(Object.keys(JSON.parse(lastSeen()?.body ?? ''))).toEqual(['items'])
    // Reading has no body to add to.
    expect((await openai.conversations.retrieve(id)).id).toBe(id)
  })

  test('that limit the output of requests do not refuse reading', async () => {
    const made = await create()
    running.worker.policies = compilePolicySet([
      testPolicy({ id: 'p', kind: 'request-limits', config: { max_output_tokens: 10 } }),
      testPolicy({ id: 'q', kind: 'model-access', config: { allow_models: ['gpt'] } }),
    ])
    expect((await openai.responses.retrieve(made.id)).id).toBe(made.id)
    expect((await openai.conversations.create()).id).toMatch(/^conv_/)
    running.worker.policies = compilePolicySet([
      testPolicy({ id: 'q', kind: 'model-access', config: { deny_models: ['gpt'] } }),
    ])
    expect((await refusal(openai.responses.retrieve(made.id)))[0]).toBe(403)
  })
})

describe('a call for a stored object', () => {
  const get = (path: string, init: RequestInit = {}) =>
    fetch(`${running.url}${path}`, { headers: { authorization: `Bearer ${running.secret}` }, ...init })

  test('is refused for a query that the route does not know, and for a wrong value', async () => {
    const { id } = await create()
    for (const query of ['limit=1', 'stream=yes', 'starting_after=-1', 'include=a%26b', 'api-version=1']) {
      expect([query, (await get(`/v1/responses/${id}?${query}`)).status]).toEqual([query, 422])
    }
    for (const query of ['limit=0', 'limit=101', 'after=..%2Fx', 'order=up']) {
      expect([query, (await get(`/v1/responses/${id}/input_items?${query}`)).status]).toEqual([query, 422])
    }
    expect((await get(`/v1/responses/${id}?include[]=message.output_text.logprobs`)).status).toBe(200)
  })

  test('is refused without a token, and with another method', async () => {
    const { id } = await create()
    expect((await get(`/v1/responses/${id}`, { headers: {} })).status).toBe(401)
    const put = await get(`/v1/responses/${id}`, { method: 'PUT' })
    expect([put.status, put.headers.get('allow')]).toEqual([405, 'GET, DELETE'])
    const compact = await get('/v1/responses/compact')
    expect([compact.status, compact.headers.get('allow')]).toEqual([405, 'POST'])
    expect((await get('/v1/conversations')).status).toBe(405)
  })

  test('is told of a missing /v1', async () => {
    const answer = await get('/conversations/conv_1')
    expect([answer.status, await answer.text()]).toMatchObject([404, expect.stringContaining('/v1/conversations')])
  })
})

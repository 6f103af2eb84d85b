/** Conversations over a WebSocket of the responses language: frames that hold only what is new. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { eventually } from '../../../test/support/eventually.ts'
import { compilePolicySet } from '../../policies/chain.ts'
import { startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { policy } from '../testing/policies.ts'
import { openSocket, type TestSocket } from '../testing/socket.ts'
import { testModel, testProvider } from '../testing/worker.ts'
import { ConversationMemory } from './conversation-memory.ts'

interface Asked {
  input: unknown
  previous_response_id?: string
  [member: string]: unknown
}

let running: TestGateway
let socket: TestSocket
let answer: (body: Asked) => Response

const message = (text: string, role = 'user') => ({
  type: 'message',
  role,
  content: [{ type: role === 'user' ? 'input_text' : 'output_text', text }],
})
const call = (id: string) => ({
  id: `fc_${id}`,
  type: 'function_call',
  status: 'completed',
  call_id: id,
  name: 'run',
  arguments: '{"n":1.0}',
})
const result = (id: string, output = 'done') => ({ type: 'function_call_output', call_id: id, output })

const frames = (events: readonly object[]) =>
  new Response(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''), {
    headers: { 'content-type': 'text/event-stream' },
  })

/** A response with these items, `output` of which its last event repeats. */
function responded(id: string, items: readonly object[], more: object = {}, output = items): Response {
  const response = { id, object: 'response', status: 'in_progress', store: false, output: [], ...more }
  const usage = { input_tokens: 5, output_tokens: 1, total_tokens: 6 }
  return frames([
    { type: 'response.created', response },
    ...items.map((item, index) => ({ type: 'response.output_item.done', output_index: index, item })),
    { type: 'response.completed', response: { ...response, status: 'completed', output, usage } },
  ])
}

beforeEach(async () => {
  let count = 0
  answer = () => responded(`resp_${++count}`, [call(`call_${count}`)])
  running = await startTestGateway((_, body) => answer(JSON.parse(body)), { body_limit_bytes: 64 * 1024 })
  socket = await connect()
})
afterEach(async () => {
  socket.close()
  await running.stop()
})

const connect = () =>
  openSocket(`${running.url.replace('http', 'ws')}/v1/responses`, { authorization: `Bearer ${running.secret}` })

/** Sends one frame and returns the last event of its answer. */
async function ask(frame: object, at = socket) {
  at.send(JSON.stringify({ type: 'response.create', model: 'gpt-test', store: false, ...frame }))
  for (;;) {
    const [text = ''] = await at.frames(1)
    const event = JSON.parse(text)
    if (/^(?:error|response\.(?:completed|incomplete|failed))$/.test(event.type)) return event
  }
}

const sent = (): Asked[] => running.seen.map(({ body }) => JSON.parse(body))
const notFound = { type: 'error', status: 400, error: { code: 'previous_response_not_found' } }
const outcomes = () => running.worker.journal.outcomes()
const blockSecret = () => policy({ id: 'p', kind: 'term-filter', config: { terms: ['forbidden'], action: 'block' } })

describe('a frame that continues the last response', () => {
  test('reaches the provider as the whole request', async () => {
    const first = await ask({ instructions: 'Be brief', input: 'List the files' })
    const second = await ask({ previous_response_id: first.response.id, input: [result('call_1')] })
    await ask({ previous_response_id: second.response.id, input: [result('call_2'), message('And now?')] })
    const user = { type: 'message', role: 'user', content: 'List the files' }
    expect(sent()).toEqual([
      { model: 'gpt-test', store: false, instructions: 'Be brief', input: 'List the files', stream: true },
      { model: 'gpt-test', store: false, input: [user, call('call_1'), result('call_1')], stream: true },
      {
        model: 'gpt-test',
        store: false,
        input: [user, call('call_1'), result('call_1'), call('call_2'), result('call_2'), message('And now?')],
        stream: true,
      },
    ])
  })

  test('keeps the spelling of the items that were sent', async () => {
    const spelled = '[ {"type":"message",  "role":"user","content":"\\u00e9 1.0","n":1.0} ]'
    socket.send(`{"type":"response.create","model":"gpt-test","store":false,"input":${spelled}}`)
    await socket.frames(3)
    await ask({ previous_response_id: 'resp_1', input: [] })
    expect(running.seen[1]?.body).toContain(spelled.slice(2, -2))
  })

  test('reaches a provider of another language', async () => {
    const events = ['message_start', 'message_stop']
    running.worker.upstreams.push(
      testProvider({ id: 'a', name: 'a', kind: 'anthropic', baseUrl: running.worker.upstreams[0]?.baseUrl ?? null }),
    )
    running.worker.catalog.push(testModel({ id: 'claude', providerId: 'a', maxOutputTokens: 100 }))
    answer = () =>
      frames([
        {
          type: events[0],
          message: { id: 'm', type: 'message', role: 'assistant', model: 'claude', content: [], usage: {} },
        },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } },
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } },
        { type: events[1] },
      ])
    const first = await ask({ model: 'claude', input: 'One' })
    await ask({ model: 'claude', previous_response_id: first.response.id, input: 'Two' })
    expect(sent()[1]?.messages).toMatchObject([
      { role: 'user', content: [{ text: 'One' }] },
      { role: 'assistant', content: [{ text: 'Hello' }] },
      { role: 'user', content: [{ text: 'Two' }] },
    ])
  })

  test('takes the items from their own events where the last event has none', async () => {
    answer = () => responded('resp_a', [call('a'), message('b', 'assistant')], {}, [])
    await ask({ input: [message('Hi')] })
    await ask({ previous_response_id: 'resp_a', input: [result('a')] })
    expect(sent()[1]?.input).toEqual([message('Hi'), call('a'), message('b', 'assistant'), result('a')])
  })

  test('has no reasoning that its provider could not read again', async () => {
    const encrypted = { type: 'reasoning', id: 'rs_2', summary: [], encrypted_content: 'x' }
    answer = () => responded('resp_a', [{ type: 'reasoning', id: 'rs_1', summary: [] }, encrypted, call('a')])
    await ask({ input: [message('Hi')] })
    await ask({ previous_response_id: 'resp_a', input: [result('a')] })
    expect(sent()[1]?.input).toEqual([message('Hi'), encrypted, call('a'), result('a')])
  })

  test('is sent as it is where the provider has stored the response', async () => {
    answer = () => responded('resp_a', [call('a')], { store: true })
    const first = await ask({ store: true, input: 'Hi' })
    await ask({ store: true, previous_response_id: first.response.id, input: [result('a')] })
    expect(sent()[1]).toMatchObject({ previous_response_id: 'resp_a', input: [result('a')] })
  })
})

test('a frame that asks for a response in the background is refused, and no provider is called', async () => {
  expect(await ask({ background: true, input: 'Hi' })).toMatchObject({
    type: 'error',
    status: 422,
    error: { code: 'invalid_parameter', param: 'background' },
  })
  expect(running.seen).toHaveLength(0)
})

describe('a frame that asks for no output', () => {
  test('is answered without the provider, recorded and not charged', async () => {
    const warm = await ask({ generate: false, instructions: 'Be brief', input: [] })
    expect(warm).toMatchObject({
      type: 'response.completed',
      response: { status: 'completed', output: [], usage: { total_tokens: 0 }, instructions: 'Be brief' },
    })
    expect(running.seen).toHaveLength(0)
    const [outcome] = outcomes()
    expect(outcome).toMatchObject({
      verdict: 'allow',
      details: { attempts: 0, notes: ['request.not_generated'], model: 'gpt-test' },
    })
    expect(outcome?.event_cost_attribution).toBeUndefined()
    await ask({ previous_response_id: warm.response.id, input: [message('Hi')] })
    expect(sent()).toEqual([{ model: 'gpt-test', store: false, input: [message('Hi')], stream: true }])
  })

  test('takes no request from the token', async () => {
    const before = running.worker.journal.opened.size
    await ask({ generate: false, input: [] })
    expect(running.worker.journal.opened.size).toBe(before)
  })

  test('passes the policies, and its text again with the next frame', async () => {
    running.worker.policies = compilePolicySet([blockSecret()])
    expect(await ask({ generate: false, input: 'forbidden' })).toMatchObject({
      error: { code: 'content_policy_violation' },
    })
    running.worker.policies = compilePolicySet([])
    const warm = await ask({ generate: false, input: 'forbidden' })
    running.worker.policies = compilePolicySet([blockSecret()])
    const next = await ask({ previous_response_id: warm.response.id, input: 'go on' })
    expect(next).toMatchObject({ error: { code: 'content_policy_violation' } })
    expect(running.seen).toHaveLength(0)
  })

  test('is refused where generate is no boolean', async () => {
    expect(await ask({ generate: 'no', input: 'Hi' })).toMatchObject({
      error: { code: 'invalid_parameter', param: 'generate' },
    })
  })
})

describe('an id that is not kept', () => {
  test('is previous_response_not_found, and the whole conversation can be sent', async () => {
    expect(await ask({ previous_response_id: 'resp_other', input: 'Hi' })).toMatchObject(notFound)
    expect(await ask({ previous_response_id: 'resp_other', generate: false, input: 'Hi' })).toMatchObject(notFound)
    expect(running.seen).toHaveLength(0)
    expect(outcomes()).toMatchObject([
      { verdict: 'deny', reason_code: 'previous_response_not_found' },
      { reason_code: 'previous_response_not_found' },
    ])
    expect(await ask({ input: 'Hi' })).toMatchObject({ type: 'response.completed' })
  })

  test('is previous_response_not_found too where a provider may have stored it, but not for this owner', async () => {
    expect(await ask({ previous_response_id: 'resp_other', store: true, input: 'Hi' })).toMatchObject(notFound)
    expect(sent()).toEqual([])
  })

  test('is one of another connection', async () => {
    await ask({ input: 'Hi' })
    const other = await connect()
    expect(await ask({ previous_response_id: 'resp_1', input: 'x' }, other)).toMatchObject(notFound)
    other.close()
  })

  test('is the last one but one, and the one whose continuation failed', async () => {
    await ask({ input: 'Hi' })
    await ask({ previous_response_id: 'resp_1', input: [result('call_1')] })
    expect(await ask({ previous_response_id: 'resp_1', input: 'x' })).toMatchObject(notFound)
    answer = () => Response.json({ error: { message: 'no', type: 'x', code: 'y' } }, { status: 400 })
    expect(await ask({ previous_response_id: 'resp_2', input: [result('call_2')] })).toMatchObject({ status: 400 })
    expect(await ask({ previous_response_id: 'resp_2', input: [result('call_2')] })).toMatchObject(notFound)
  })
})

describe('policies', () => {
  const words = ['alpha', 'beta', 'forbidden', 'gamma']
  const conversations = fc.array(fc.record({ text: fc.constantFrom(...words), alone: fc.boolean() }), {
    minLength: 1,
    maxLength: 6,
  })

  test('see a conversation that was split over frames as they see the whole one', async () => {
    await fc.assert(
      fc.asyncProperty(conversations, async (turns) => {
        const connection = await connect()
        // Each frame is answered before the policy exists; the last one holds what is left.
        running.worker.policies = compilePolicySet([])
        let previous: string | null = null
        let part: object[] = []
        for (const { text, alone } of turns) {
          part.push(message(text))
          if (!alone) continue
          const warm = await ask({ generate: false, input: part, previous_response_id: previous }, connection)
          previous = warm.response.id
          part = []
        }
        running.worker.policies = compilePolicySet([blockSecret()])
        running.seen.length = 0
        const last = await ask({ input: part, previous_response_id: previous }, connection)
        const split = outcomes().at(-1)
        connection.close()
        const whole = {
          ...{ model: 'gpt-test', store: false, input: turns.map(({ text }) => message(text)) },
          stream: true,
        }
        const headers = { authorization: `Bearer ${running.secret}`, 'content-type': 'application/json' }
        const posted = await fetch(`${running.url}/v1/responses`, {
          method: 'POST',
          headers,
          body: JSON.stringify(whole),
        })
        await posted.text()
        const isForbidden = turns.some(({ text }) => text === 'forbidden')
        expect(last.type).toBe(isForbidden ? 'error' : 'response.completed')
        expect(posted.status).toBe(isForbidden ? 400 : 200)
        expect(split?.verdict).toBe(outcomes().at(-1)?.verdict ?? 'error')
        if (previous !== null) expect(split?.prompt_hash).toBe(outcomes().at(-1)?.prompt_hash ?? '')
        const [one, other] = sent()
        expect(one?.input).toEqual(other?.input)
      }),
      { numRuns: 40 },
    )
  })
})

describe('the memory of conversations', () => {
  const bytes = async () => {
    const text = await running.gateway.metrics().getSingleMetricAsString('gatehouse_request_memory_bytes')
    return Number(/^gatehouse_request_memory_bytes (\d+)$/m.exec(text)?.[1])
  }

  test('is counted while the connection is open, and free afterwards', async () => {
    await ask({ input: 'x'.repeat(10_000) })
    await eventually(async () => (await bytes()) > 0 && (await bytes()) < 12_000)
    expect(await bytes()).toBeGreaterThan(10_000)
    socket.close()
    await eventually(async () => (await bytes()) === 0)
  })

  test('is free after a connection that ends in the middle of an answer', async () => {
    answer = () => new Response(new ReadableStream(), { headers: { 'content-type': 'text/event-stream' } })
    socket.send(JSON.stringify({ type: 'response.create', model: 'gpt-test', input: 'x'.repeat(10_000) }))
    await eventually(() => running.seen.length === 1)
    expect(await bytes()).toBeGreaterThan(10_000)
    socket.close()
    await eventually(async () => (await bytes()) === 0)
  })

  test('refuses a conversation above the limit of a body, and closes with 1009', async () => {
    await ask({ input: 'x'.repeat(60_000) })
    expect(await ask({ previous_response_id: 'resp_1', input: 'y'.repeat(10_000) })).toMatchObject({
      status: 413,
      error: { code: 'request_too_large', message: 'The conversation is larger than the limit of 65536 bytes' },
    })
    expect((await socket.ended).code).toBe(1009)
  })

  test('gives up the conversation that was used the longest ago', () => {
    const memory = new ConversationMemory(100)
    const given: string[] = []
    const holder = (name: string) => ({ giveUp: () => void given.push(name) })
    const [a, b, c] = [holder('a'), holder('b'), holder('c')]
    expect([memory.hold(a, 40), memory.hold(b, 40), memory.hold(a, 45)]).toEqual([true, true, true])
    expect(memory.hold(c, 50)).toBe(true)
    expect(given).toEqual(['b'])
    expect(memory.used).toBe(95)
    expect(memory.hold(a, 101)).toBe(false)
    expect(memory.used).toBe(50)
    memory.release(c)
    memory.release(c)
    expect(memory.used).toBe(0)
  })

  test('costs a conversation that was given up only that it is sent whole', async () => {
    await running.stop()
    running = await startTestGateway((_, body) => answer(JSON.parse(body)), { memory_bytes: 4 * 1024 * 1024 })
    socket = await connect()
    await ask({ input: 'x'.repeat(300_000) })
    const other = await connect()
    answer = () => responded('resp_b', [call('b')])
    await ask({ input: 'y'.repeat(300_000) }, other)
    expect(await ask({ previous_response_id: 'resp_1', input: [result('call_1')] })).toMatchObject(notFound)
    expect(await ask({ previous_response_id: 'resp_b', input: [result('b')] }, other)).toMatchObject({
      type: 'response.completed',
    })
    other.close()
  })
})

/** Policies about tools see the names that a streamed answer calls as clients will: whole, however they come. */
import { afterEach, expect, test } from 'bun:test'
import type { StoredPolicy } from '../../policies/stored-policy.ts'
import { question, type TestGateway } from '../testing/gateway.ts'
import { askResponses, eventStream, frame, policy, startPoliced } from '../testing/policies.ts'

let running: TestGateway | null = null
afterEach(async () => {
  await running?.stop()
  running = null
})

const delta = (value: object, finish_reason: string | null = null) =>
  frame({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta: value, finish_reason }] })
const callOf = (...parts: object[]): string =>
  parts.map((part) => delta({ tool_calls: [part] })).join('') + delta({}, 'tool_calls') + frame('[DONE]')
const named = (name: string, more: object = {}) => ({ index: 0, function: { name, ...more } })

async function statusUnder(given: StoredPolicy, stream: string, path?: 'responses') {
  const gateway = await startPoliced([given], () => new Response(stream, eventStream))
  running = gateway
  const asked =
    path === 'responses'
      ? await askResponses(gateway, JSON.stringify({ model: 'gpt-test', input: 'hi', stream: true }))
      : await gateway.chat({ ...question, stream: true })
  const answer = { status: asked.status, body: await asked.text() }
  await gateway.stop()
  running = null
  return answer
}

const access = (config: Record<string, unknown>) =>
  policy({ id: 'a', kind: 'tool-access', stages: ['post_request'], config })

test('allows or denies a tool name that arrives in parts by the whole name', async () => {
  const condition = policy({
    id: 'a',
    kind: 'condition',
    stages: ['post_request'],
    when: 'response.tool_calls.exists(t, t == "zebra")',
    config: { verdict: 'deny', reason_code: 'c.c' },
  })
  for (let split = 1; split < 5; split++) {
    const [first, rest] = ['zebra'.slice(0, split), 'zebra'.slice(split)]
    const stream = callOf(named(first), named(rest), named('', { arguments: '{}' }))
    for (const deny of [access({ deny: ['zebra'] }), access({ deny: ['zebra'], action: 'remove' }), condition]) {
      const { status, body } = await statusUnder(deny, stream)
      expect(status).toBe(403)
      expect(body).not.toContain(`"${first}"`)
    }
    const { status, body } = await statusUnder(access({ allow: ['zebra'] }), stream)
    expect(status).toBe(200)
    // Some clients take the last name that is said for the whole: it is said once.
    expect(body.match(/"name":"\w+"/g)).toEqual(['"name":"zebra"'])
    expect((await statusUnder(access({ deny: [first] }), stream)).status).toBe(200)
  }
})

test('breaks whole-call policies when clients could join the calls in different ways', async () => {
  const stream = callOf(named('ze', { arguments: '{' }), named('bra', { arguments: '}' }))
  expect((await statusUnder(access({ deny: ['zebra'] }), stream)).status).toBe(403)
  const open = { ...access({ deny: ['zebra'] }), whenBroken: 'allow' as const }
  expect(await statusUnder(open, stream)).toMatchObject({ status: 200 })
})

test('reads a tool name that only the end of the arguments gives', async () => {
  const done = { type: 'response.function_call_arguments.done', item_id: 'i', output_index: 0, arguments: '{}' }
  const response = { id: 'r', object: 'response', status: 'completed', output: [] }
  const stream = (name: string) => frame({ ...done, name }) + frame({ type: 'response.completed', response })
  expect((await statusUnder(access({ deny: ['zebra'] }), stream('zebra'), 'responses')).status).toBe(403)
  expect((await statusUnder(access({ deny: ['zebra'] }), stream('lion'), 'responses')).status).toBe(200)
})

test('applies tool lists to a call in malformed JSON that some clients read, but not in a broken stream', async () => {
  const chunk = { choices: [{ index: 0, delta: { tool_calls: [named('zebra', { arguments: '{}' })] } }] }
  const call = JSON.stringify(chunk)
  const end = delta({}, 'tool_calls') + frame('[DONE]')
  for (const data of [`${call}\ndata: {}`, `${call},`, `[${call}]`, `${call}${call}`, call.slice(0, -1)]) {
    for (const config of [{ deny: ['zebra'] }, { allow: ['lion'] }]) {
      expect((await statusUnder(access(config), `data: ${data}\n\n${end}`)).status).toBe(403)
    }
  }
  const config = { terms: ['x-y'], action: 'block' }
  const blocks = policy({ id: 'a', kind: 'term-filter', stages: ['pre_response'], config })
  for (const given of [access({ deny: ['zebra'] }), blocks]) {
    expect((await statusUnder(given, `data: ${call.slice(0, -9)}`)).status).toBe(502)
  }
})

test('applies tool lists to a call in a frame with a number that JSON does not allow', async () => {
  const item = { id: 'i', type: 'function_call', call_id: 'c', name: 'zebra', arguments: '{}' }
  const response = { id: 'r', object: 'response', status: 'completed', output: [] }
  const done = frame({ type: 'response.output_item.done', output_index: 0, item, score: 0 }).replace(
    '"score":0',
    '"score":NaN',
  )
  const stream = done + frame({ type: 'response.completed', response })
  expect((await statusUnder(access({ deny: ['zebra'] }), stream, 'responses')).status).toBe(403)
  const { status, body } = await statusUnder(access({ deny: ['lion'] }), stream, 'responses')
  expect(status).toBe(200)
  expect(body).toContain('"score":null')
})

test('sends no part of a whole call where a policy stops the stream in its arguments', async () => {
  const item = { type: 'function_call', id: 'fc_1', call_id: 'c', name: 'send', arguments: '{"to":"ann@example.com"}' }
  const text = { item_id: 'm_1', output_index: 0, content_index: 0, delta: 'I write it. '.repeat(40) }
  const events = [
    { type: 'response.created', response: { id: 'resp_1', object: 'response', output: [] } },
    { type: 'response.output_text.delta', ...text },
    { type: 'response.output_text.done', ...text, delta: undefined, text: text.delta },
    { type: 'response.output_item.done', output_index: 1, item },
    { type: 'response.completed', response: { id: 'resp_1', object: 'response', output: [item] } },
  ]
  const stream = events.map((event, sequence_number) => frame({ ...event, sequence_number })).join('')
  const look = policy({ id: 'a', kind: 'pii', stages: ['post_request'], config: { types: ['email'], action: 'block' } })
  const { status, body } = await statusUnder(look, stream, 'responses')
  expect(status).toBe(200)
  expect(body).toContain('I write it.')
  expect(body).toContain('content_policy_violation')
  expect(body).not.toContain('"send"')
})

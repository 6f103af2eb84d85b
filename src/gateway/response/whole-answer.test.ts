import { afterEach, expect, test } from 'bun:test'
import type { StoredPolicy } from '../../policies/stored-policy.ts'
import { completion, question, type TestGateway } from '../testing/gateway.ts'
import { askResponses, eventStream, frame, policy, startPoliced } from '../testing/policies.ts'

let running: TestGateway | null = null
afterEach(async () => {
  await running?.stop()
  running = null
})

/** What a whole answer comes to under a policy. */
async function answerUnder(looking: StoredPolicy, body: unknown) {
  running = await startPoliced([looking], () => Response.json(body))
  const answer = await running.chat(question)
  const verdict = answer.headers.get('x-service-verdict')
  const text = await answer.text()
  await running.stop()
  running = null
  return { verdict, text }
}

const look = (kind: string, config: Record<string, unknown>, change: Partial<StoredPolicy> = {}) =>
  policy({ id: 'a', kind, stages: ['pre_response'], config, ...change })

test('inspects texts and tools of an answer whose lists are objects, as clients read them', async () => {
  const call = { id: '1', type: 'function', function: { name: 'rm', arguments: '{}' } }
  const message = { role: 'assistant', content: 'a swordfish', tool_calls: { 0: call } }
  const body = { ...completion, choices: { 0: { index: 0, message, finish_reason: 'tool_calls' } } }
  for (const [looking, expected] of [
    [look('term-filter', { terms: ['swordfish'], action: 'block' }), 'BLOCK'],
    [look('term-filter', { terms: ['swordfish'], action: 'redact' }), 'REDACT'],
    [look('tool-access', { deny: ['rm'] }), 'DENY'],
    [look('json-schema', { schema: { type: 'object' } }), 'BLOCK'],
  ] as const) {
    const { verdict, text } = await answerUnder(looking, body)
    expect(verdict).toBe(expected)
    expect(text).not.toContain('swordfish')
  }
})

test('sees a tool call nested in lists at any depth', async () => {
  const call = { id: '1', type: 'function', function: { name: 'rm', arguments: '{}' } }
  const choice = (calls: unknown) => ({ index: 0, message: { role: 'assistant', content: null, tool_calls: calls } })
  for (const choices of [
    [choice([[call]])],
    [choice({ 0: { 0: call } })],
    { 0: [choice([call])] },
    [[choice([call])]],
  ]) {
    for (const looking of [
      look('tool-access', { deny: ['rm'] }),
      look(
        'condition',
        { verdict: 'deny', reason_code: 'x' },
        { when: 'response.tool_calls.exists(name, name == "rm")' },
      ),
    ]) {
      expect((await answerUnder(looking, { ...completion, choices })).verdict).toBe('DENY')
    }
  }
})

test('passes log probabilities only when no policy can change the text', async () => {
  const others = { token: 'swordfish', logprob: -2, bytes: null }
  const token = { token: 'trout', logprob: -0.10000000000000001, bytes: null, top_logprobs: [others] }
  const choice = { index: 0, message: { role: 'assistant', content: 'trout' }, finish_reason: 'stop' }
  const bodyWith = (logprobs: unknown) => ({ ...completion, choices: [{ ...choice, logprobs }] })
  const body = bodyWith({ content: [token], refusal: null })
  const without = JSON.stringify(bodyWith(null))
  const term = (action: string) => ({ terms: ['swordfish'], action })
  for (const stages of [['pre_response'], ['post_request']] as const) {
    for (const action of ['block', 'redact', 'escalate']) {
      const looking = look('term-filter', term(action), { stages: [...stages] })
      expect(await answerUnder(looking, body)).toEqual({ verdict: 'ALLOW', text: without })
    }
  }
  for (const looking of [
    look('term-filter', term('block'), { mode: 'monitor' }),
    look('term-filter', term('block'), { when: 'response.text == "carp"' }),
    look('term-filter', term('block'), { stages: ['pre_request'] }),
    look('tool-access', { deny: ['rm'] }),
  ]) {
    expect(await answerUnder(looking, body)).toEqual({ verdict: 'ALLOW', text: JSON.stringify(body) })
  }
})

test('inspects the request echo of a response when the caller did not send it, whole and streamed', async () => {
  const looking = look('term-filter', { terms: ['swordfish'], action: 'block' })
  const output = [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'trout' }] }]
  const own = { id: 'resp_1', object: 'response', status: 'completed', output, instructions: 'never say swordfish' }
  const told = [{ metadata: { note: 'a swordfish' } }, { text: { format: { description: 'a swordfish' } } }]
  for (const stream of [false, true]) {
    let response: object = own
    const gateway = await startPoliced([looking], () =>
      stream
        ? new Response(frame({ type: 'response.completed', sequence_number: 0, response }), eventStream)
        : Response.json(response),
    )
    running = gateway
    const verdictOf = async () => {
      const asked = { model: 'gpt-test', input: 'Hello', instructions: 'never say swordfish', stream }
      const answer = await askResponses(gateway, JSON.stringify(asked))
      const text = await answer.text()
      return [answer.status, text.includes('a swordfish')]
    }
    expect(await verdictOf()).toEqual([200, false])
    for (const more of told) {
      response = { ...own, ...more }
      expect(await verdictOf()).toEqual([400, false])
    }
    await gateway.stop()
    running = null
  }
})

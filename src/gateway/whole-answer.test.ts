import { afterEach, expect, test } from 'bun:test'
import { completion, question, type TestGateway } from './test-gateway.ts'
import { policy, startPoliced } from './test-policies.ts'

let running: TestGateway | null = null
afterEach(async () => {
  await running?.stop()
  running = null
})

/** What a whole answer comes to under a policy. */
async function answerUnder(looking: ReturnType<typeof policy>, body: unknown) {
  running = await startPoliced([looking], () => Response.json(body))
  const answer = await running.chat(question)
  const verdict = answer.headers.get('x-service-verdict')
  const text = await answer.text()
  await running.stop()
  running = null
  return { verdict, text }
}

const look = (kind: string, config: Record<string, unknown>) =>
  policy({ id: 'a', kind, stages: ['pre_response'], config })

test('an answer whose lists are objects, as clients read them all the same, is looked at, texts and tools', async () => {
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

/** What translation decodes, policies have read before: numbers of arguments and files in base64. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { compilePolicySet } from '../../policies/chain.ts'
import type { TestGateway } from '../testing/gateway.ts'
import { policy } from '../testing/policies.ts'
import { startTranslating } from '../testing/translating.ts'

let running: TestGateway

beforeAll(async () => {
  ;({ running } = await startTranslating())
  const config = { types: ['card', 'email'], action: 'redact' }
  running.worker.policies = compilePolicySet([policy({ id: 'p', kind: 'pii', config })])
})
afterAll(() => running.stop())

const models = ['openai', 'anthropic', 'gemini', 'bedrock']

/** What each provider was sent, with what stands in base64 beside it. Nothing answers here. */
async function sentOf(family: string, members: object): Promise<string[]> {
  const sent: string[] = []
  for (const model of models) {
    running.seen.length = 0
    await fetch(`${running.url}/v1/${family}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${running.secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, ...members }),
    })
    const body = running.seen.at(-1)?.body ?? ''
    const encoded = body.match(/[\w+/]{12,}={0,2}/g) ?? []
    sent.push(`${body} ${encoded.map((base64) => Buffer.from(base64, 'base64').toString()).join(' ')}`)
  }
  return sent
}

test('sends a card number in a numeric argument to no provider, however it is spelled', async () => {
  const call = { name: 'f', arguments: '{"c":4.111111111111111e15,"n":1.50}' }
  const inChat = [
    { role: 'user', content: 'u' },
    { role: 'assistant', content: null, tool_calls: [{ id: 'a', type: 'function', function: call }] },
    { role: 'tool', tool_call_id: 'a', content: 'r' },
  ]
  const inResponses = [
    { role: 'user', content: 'u' },
    { type: 'function_call', call_id: 'a', ...call },
    { type: 'function_call_output', call_id: 'a', output: 'r' },
  ]
  const sent = [
    ...(await sentOf('chat/completions', { messages: inChat })),
    ...(await sentOf('responses', { input: inResponses })),
  ]
  for (const body of sent) {
    expect(body).toContain('[CARD]')
    expect(body).not.toMatch(/4\.?1{15}/)
  }
})

test('sends an address in a file to no provider, as base64 or decoded', async () => {
  const data = `data:text/plain;base64,${Buffer.from('hello leak@example.com').toString('base64')}`
  const file = { filename: 'a.txt', file_data: data }
  const source = { type: 'base64', media_type: 'text/plain', data: data.slice(data.indexOf(',') + 1) }
  const sent = [
    ...(await sentOf('chat/completions', { messages: [{ role: 'user', content: [{ type: 'file', file }] }] })),
    ...(await sentOf('responses', { input: [{ role: 'user', content: [{ type: 'input_file', ...file }] }] })),
    ...(await sentOf('messages', {
      max_tokens: 9,
      messages: [{ role: 'user', content: [{ type: 'document', source }] }],
    })),
  ]
  for (const body of sent) {
    expect(body).toContain('hello [EMAIL]')
    expect(body).not.toContain('leak@example.com')
  }
})

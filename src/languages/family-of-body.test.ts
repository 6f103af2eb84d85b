import { expect, test } from 'bun:test'
import { familyOfBody } from './family-of-body.ts'

const model = 'm'
const messages = [{ role: 'user', content: 'Hi' }]

test.each([
  ['chat', { model, messages }],
  ['chat', { model, messages, max_tokens: 5 }],
  ['chat', { model, messages, tools: [{ type: 'function', function: { name: 'f' } }] }],
  ['messages', { model, messages, max_tokens: 5, system: 'Be short' }],
  ['messages', { model, messages, tools: [{ name: 'f', input_schema: {} }] }],
  ['messages', { model, messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a' }] }] }],
  ['responses', { model, input: 'Hi' }],
  ['responses', { model, input: [{ role: 'user', content: 'Hi' }], instructions: 'Be short' }],
  ['embeddings', { model, input: 'Hi', dimensions: 3 }],
  ['embeddings', { model: 'text-embedding-3-small', input: 'Hi' }],
  ['moderations', { model: 'omni-moderation-latest', input: 'Hi' }],
  ['speech', { model, input: 'Hi', voice: 'alloy', instructions: 'Slowly' }],
  ['completions', { model, prompt: 'Hi', n: 2 }],
  ['transcriptions', { model, file: {} }],
  ['mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: {} }],
  ['chat', {}],
] as const)('recognizes %s by the members of %j', (family, body) => {
  expect(familyOfBody(body)).toBe(family)
})

import { expect, test } from 'bun:test'
import { messages } from '../languages/messages/dialect.ts'
import { responses } from '../languages/responses/dialect.ts'
import { termDetector } from './detectors/terms/term-detector.ts'
import { data, pass, plain } from './testing/inspecting.ts'
import { ruleOf } from './testing/passing.ts'

test('sends event names of the language even when a term matches a word in them', () => {
  const event = (type: string, more: object) => `event: ${type}\n${data({ type, ...more })}`
  const block = { index: 0, content_block: { type: 'text', text: '' } }
  const begun = event('content_block_start', block)
  const spoken = (type: string) => event(type, { index: 0, delta: { type: 'text_delta', text: 'hey' } })
  const ended = event('content_block_stop', { index: 0 }) + event('message_stop', {})
  const part = (type: string) => event(type, { output_index: 0, content_index: 0, delta: 'hey' })
  const terms = ['delta', 'content', 'message', 'start', 'stop', 'block', 'output', 'response']
  for (const action of ['redact', 'block'] as const) {
    const rule = ruleOf(termDetector(terms, 'TERM', plain), action)
    const said = begun + spoken('content_block_delta') + ended
    expect(pass(messages, said, rule)).toEqual({ text: said, stop: null })
    expect(pass(responses, part('response.output_text.delta'), rule).text).toBe(part('response.output_text.delta'))
  }
  const other = ruleOf(termDetector(['zqx'], 'TERM', plain), 'redact')
  expect(pass(responses, part('response.zqx.delta'), other).text).not.toContain('zqx')
})

/** What a caller says to have something not done: it asks nothing of a provider that has no word for it. */
import { expect, test } from 'bun:test'
import { chat } from '../chat/translation/language.ts'
import { converse } from '../converse/language.ts'
import { gemini } from '../gemini/translation/language.ts'
import { messages } from '../messages/translation/language.ts'
import { responses } from '../responses/translation/language.ts'
import type { Language } from '../translation-language.ts'

test('sends no effort if thinking is off, and a budget if the caller only asks to see it', () => {
  const asking = { model: 'm', max_tokens: 100, messages: [{ role: 'user', content: 'a' }] }
  const off = messages.caller?.readRequest({ ...asking, thinking: { type: 'disabled' } })
  const written = (language: Language) => off && language.provider.writeRequest(off)
  expect(written(chat)).not.toHaveProperty('reasoning_effort')
  expect(written(responses)).not.toHaveProperty('reasoning')
  expect(written(messages)).toMatchObject({ thinking: { type: 'disabled' } })
  const flash = off && gemini.provider.writeRequest({ ...off, model: 'gemini-2.5-flash' })
  expect(flash).toMatchObject({ generationConfig: { thinkingConfig: { thinkingBudget: 0 } } })
  const said = responses.caller?.readRequest({ model: 'm', input: 'a', reasoning: { effort: 'none' } })
  expect(said && chat.provider.writeRequest(said)).toMatchObject({ reasoning_effort: 'none' })
  const seen = responses.caller?.readRequest({ model: 'm', input: 'a', reasoning: { summary: 'detailed' } })
  const thinkingOf = (model: string) => seen && messages.provider.writeRequest({ ...seen, model }).thinking
  expect(thinkingOf('claude-sonnet-4-5')).toEqual({ type: 'enabled', budget_tokens: 8192, display: 'summarized' })
  expect(thinkingOf('claude-opus-4-7')).toEqual({ type: 'adaptive', display: 'summarized' })
})

test('refuses a negative output limit and names it, in every caller language', () => {
  const turns = [{ role: 'user', content: 'a' }]
  const asked: [Language, string, object][] = [
    [chat, 'max_tokens', { messages: turns }],
    [chat, 'max_completion_tokens', { messages: turns, max_tokens: 5 }],
    [responses, 'max_output_tokens', { input: 'a' }],
    [messages, 'max_tokens', { messages: turns }],
  ]
  for (const [{ caller }, param, body] of asked) {
    const read = () => caller?.readRequest({ model: 'm', ...body, [param]: -1 })
    expect(read).toThrow(expect.objectContaining({ code: 'translation_unsupported', param }))
  }
})

test('leaves out a penalty of 0 for Bedrock, as for Anthropic', () => {
  const penalties = { frequency_penalty: 0, presence_penalty: 0 }
  const request = chat.caller?.readRequest({ model: 'm', messages: [{ role: 'user', content: 'a' }], ...penalties })
  expect(request && converse.provider.writeRequest(request)).toEqual({
    messages: [{ role: 'user', content: [{ text: 'a' }] }],
  })
})

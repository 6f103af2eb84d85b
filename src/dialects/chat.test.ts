import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Failure } from '../failure.ts'
import { chat } from './chat.ts'

test('chat.read takes model, stream and the length of all text', () => {
  const messages = [
    { role: 'user', content: 'abcd' },
    { role: 'user', content: [{ type: 'text', text: 'efgh' }, { type: 'image_url' }] },
    { role: 'assistant', content: null, tool_calls: [{ function: { name: 'f', arguments: '{"a":1}' } }] },
  ]
  expect(chat.read({ model: 'm', stream: true, messages })).toMatchObject({
    model: 'm',
    stream: true,
    inputEstimate: 4,
  })
  expect(chat.read({ model: 'm' })).toMatchObject({ model: 'm', stream: false, inputEstimate: 0 })
  expect(() => chat.read({ model: 7 })).toThrow(Failure)
})

const start = { model: 'm', exchangeId: '0190a0c0-0000-7000-8000-000000000000', usageAdded: false }
const frame = (data: string) => chat.reader(start).frame({ event: null, data })

test('chat.readFrame tells text, usage, the provider’s error and the end', () => {
  const delta = { content: 'ab', reasoning_content: 'c', tool_calls: [{ function: { arguments: '{}' } }] }
  expect(frame(JSON.stringify({ choices: [{ delta }], usage: null }))).toEqual({
    terminal: false,
    textLength: 5,
    usage: null,
    error: null,
    ours: false,
  })
  expect(frame('{"choices":[],"usage":{"prompt_tokens":2,"completion_tokens":1}}').usage).toEqual({
    inputTokens: 2,
    outputTokens: 1,
    cachedInputTokens: null,
    cacheWriteTokens: null,
    reasoningTokens: null,
  })
  expect(frame('{"error":{"type":"server_error"}}').error).toBe('server_error')
  expect(frame('[DONE]').terminal).toBe(true)
  for (const data of ['', 'not json', '7', 'null', '[]', '{"choices":[null,{"delta":3}]}']) {
    expect(frame(data)).toMatchObject({ terminal: false, textLength: 0, error: null })
  }
})

test('chat.errorFrames say the envelope and end the stream', () => {
  const text = new TextDecoder().decode(
    chat.reader(start).errorFrames(new Failure('upstream_provider_error'), 'request-1'),
  )
  const [first, last] = text.split('\n\n')
  expect(JSON.parse(first?.slice(6) ?? '')).toMatchObject({
    error: { type: 'server_error', param: null, code: 'upstream_provider_error' },
    request_id: 'request-1',
  })
  expect(last).toBe('data: [DONE]')
})

const recorded = resolve(import.meta.dir, '../../../shared/data/provider-streams/openai-chat')

describe.skipIf(!existsSync(recorded))('recorded streams (skipped where ../shared/data is absent)', () => {
  for (const name of existsSync(recorded) ? readdirSync(recorded) : []) {
    if (!name.endsWith('.chunks.txt')) continue
    test(`${name} tells its usage and text`, () => {
      const frames = readFileSync(join(recorded, name), 'utf8').trim().split('\n').map(frame)
      expect(frames.reduce((sum, frame) => sum + frame.textLength, 0)).toBeGreaterThan(0)
      expect(frames.findLast((frame) => frame.usage !== null)?.usage?.outputTokens).toBeGreaterThan(0)
      expect(frames.every((frame) => frame.error === null)).toBe(true)
    })
  }
})

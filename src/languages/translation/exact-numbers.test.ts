import { expect, test } from 'bun:test'
import { parseExactly } from '../../lib/json/exact-json.ts'
import { chat } from '../chat/translation/language.ts'
import { converse } from '../converse/language.ts'
import { gemini } from '../gemini/translation/language.ts'
import { messages } from '../messages/translation/language.ts'
import { responses } from '../responses/translation/language.ts'
import type { Language } from '../translation-language.ts'

const big = '12345678901234567890'
const args = `{"id":${big},"zero":-0,"far":1e400}`

test('arguments of an answer hold the same numbers in every language', () => {
  const usual = { model: 'm', exchangeId: '01890a5d-ac96-774b-bcce-b302099a8057', includeUsage: true }
  const answers: [Language, string][] = [
    [messages, `{"content":[{"type":"tool_use","id":"t","name":"f","input":${args}}],"stop_reason":"tool_use"}`],
    [
      gemini,
      `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":${args}}}]},"finishReason":"STOP"}]}`,
    ],
    [
      converse,
      `{"output":{"message":{"content":[{"toolUse":{"toolUseId":"t","name":"f","input":${args}}}]}},"stopReason":"tool_use"}`,
    ],
    [
      chat,
      JSON.stringify({
        choices: [{ message: { tool_calls: [{ id: 't', function: { name: 'f', arguments: args } }] } }],
      }),
    ],
  ]
  for (const [from, body] of answers) {
    const answer = from.provider.readAnswer(parseExactly(body))
    expect(answer.parts).toMatchObject([{ kind: 'tool_call', arguments: args }])
    for (const to of [chat, responses, messages]) {
      const written = JSON.stringify(to.caller?.writeAnswer(answer, usual))
      expect(written.includes(args) || written.includes(JSON.stringify(args))).toBe(true)
    }
  }
})

test('arguments of a stream hold the same numbers', () => {
  const frame = `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":${args}}}]},"finishReason":"STOP"}]}`
  expect(gemini.provider.streamReader().frame(null, frame)).toContainEqual({ type: 'text', part: 0, text: args })
  const begin = `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":${args}}}`
  expect(messages.provider.streamReader().frame(null, begin)).toContainEqual({ type: 'text', part: 0, text: args })
})

test('arguments and schemas of a request hold the same numbers, and a setting that would be another number is refused', () => {
  const schema = `{"type":"object","properties":{"id":{"type":"integer","maximum":${big}}}}`
  const call = JSON.stringify([{ id: 'c', type: 'function', function: { name: 'f', arguments: args } }])
  const asked = `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":${call}}],
    "tools":[{"type":"function","function":{"name":"f","parameters":${schema}}}]}`
  const request = chat.caller?.readRequest(Object(parseExactly(asked)))
  for (const { provider } of [messages, gemini, converse]) {
    const body = JSON.stringify(request && provider.writeRequest(request))
    expect([body.includes(args), body.includes(`"maximum":${big}`)]).toEqual([true, true])
  }
  const seeded = (seed: string) => () =>
    chat.caller?.readRequest(Object(parseExactly(`{"model":"m","messages":[],"seed":${seed}}`)))
  expect(seeded(big)).toThrow('seed')
  expect(seeded('1e400')).toThrow('seed')
  expect(seeded('0.69999998807907104')()?.sampling.seed?.value).toBe(0.699999988079071)
})

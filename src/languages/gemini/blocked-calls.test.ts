/** Streams of Gemini that a policy stops: no call of a blocked frame leaves, and no reason to finish. */
import { describe, expect, test } from 'bun:test'
import { forbids, pass } from '../../inspection/testing/inspecting.ts'
import { gemini } from './dialect.ts'

const frame = (parts: object[], more: object = {}) =>
  `data: ${JSON.stringify({ candidates: [{ content: { role: 'model', parts }, index: 0, ...more }] })}\n\n`
const call = (args: object, name = 'f') => ({ functionCall: { name, args } })
const finish = { finishReason: 'STOP' }

describe('a stream that a policy blocks', () => {
  test('sends nothing of a call with a match in its arguments', () => {
    const { text, stop } = pass(gemini, frame([call({ q: 'a blackbird' })], finish))
    expect([text, stop?.verdict]).toEqual(['', 'block'])
  })

  test('sends nothing of a call with a match in its name', () => {
    expect(pass(gemini, frame([call({}, 'blackbird')], finish)).text).toBe('')
  })

  test('sends no other call of the same frame', () => {
    const { text } = pass(gemini, frame([call({ q: 'a robin' }), call({ q: 'a blackbird' })], finish))
    expect(text).toBe('')
  })

  test('sends the text before the blocked call, without the call and without a reason to finish', () => {
    const stream = frame([{ text: 'Let me look' }]) + frame([{ text: ' it up' }, call({ q: 'blackbird' })], finish)
    const { text } = pass(gemini, stream)
    expect(text).toContain('Let me look')
    expect(text).not.toMatch(/functionCall|finishReason|blackbird/)
  })

  test('sends the text before a match in the last text, without a reason to finish', () => {
    const { text, stop } = pass(gemini, frame([{ text: 'I hear a blackbird sing' }], finish))
    expect([text.includes('"I hear a "'), stop?.verdict]).toEqual([true, 'block'])
    expect(text).not.toContain('finishReason')
  })

  test('keeps the calls of earlier frames that passed', () => {
    const { text } = pass(gemini, frame([call({ q: 'a robin' })]) + frame([call({ q: 'a blackbird' })], finish))
    expect(text).toBe(frame([call({ q: 'a robin' })]))
  })

  test('sends redacted arguments as an object', () => {
    const { text } = pass(gemini, frame([call({ q: 'a blackbird' })], finish), forbids('redact'))
    const said = JSON.parse(text.slice('data: '.length))
    expect(said.candidates[0].content.parts[0].functionCall.args).toEqual({ q: expect.stringMatching(/^a \[/) })
  })
})

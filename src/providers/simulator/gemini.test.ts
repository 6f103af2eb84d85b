import { expect, test } from 'bun:test'
import type { UpstreamCall } from '../provider.ts'
import { answerGemini } from './gemini.ts'

test('reads the body of a request once, however many words it streams', async () => {
  const contents = [{ parts: [{ text: 'word '.repeat(500) }] }]
  const bytes = new TextEncoder().encode(JSON.stringify({ contents }))
  let reads = 0
  const call: UpstreamCall = {
    family: 'gemini',
    model: 'simulator/echo',
    stream: true,
    get body() {
      reads++
      return bytes
    },
    contentType: 'application/json',
    headers: {},
    signal: new AbortController().signal,
    answerLimit: 1_000_000,
  }
  const text = await answerGemini(call, { contents }, 'echo').text()
  expect([text.match(/^data: /gm)?.length, new Set(text.match(/"responseId":"[^"]*"/g)).size]).toEqual([500, 1])
  expect(reads).toBe(1)
})

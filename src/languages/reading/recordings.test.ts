import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { chat } from '../chat/dialect.ts'
import type { Dialect } from '../dialect.ts'
import { messages } from '../messages/dialect.ts'
import { responses } from '../responses/dialect.ts'
import { factsOf, framesOf, heldBack, receivedFrom, recordings } from '../testing/streams.ts'

const families: readonly [Dialect, ReturnType<typeof recordings>][] = [
  [chat, recordings('openai-chat')],
  [responses, recordings('openai-responses')],
  [messages, recordings('anthropic-messages')],
]
const all = families.flatMap(([dialect, recorded]) => recorded.map((recording) => ({ dialect, ...recording })))
/** Recorded with frames that are no JSON: their answer never ends. */
const withoutEnd = 'parallel-tool-call-wrapper.1.chunks.txt'

describe('recorded streams', () => {
  for (const { dialect, name, bytes } of all) {
    test(`${name}: ends once, and tells its text and usage`, () => {
      const facts = factsOf(dialect, framesOf(bytes))
      const last = facts.at(-1)
      expect(last?.terminal).toBe(name !== withoutEnd)
      expect(facts.filter(({ ours }) => ours)).toEqual([])
      if (name === 'openai-error.1.chunks.txt') {
        expect(facts.flatMap(({ error }) => error ?? [])).toEqual(['insufficient_quota', 'insufficient_quota'])
        return
      }
      expect(facts.filter(({ error }) => error !== null)).toEqual([])
      if (name === withoutEnd) return
      expect(last?.usage?.outputTokens).toBeGreaterThan(0)
      expect(last?.usage?.inputTokens).toBeGreaterThan(0)
      if (name !== 'anthropic-refusal.chunks.txt') {
        expect(facts.reduce((sum, { textLength }) => sum + textLength, 0)).toBeGreaterThan(0)
      }
    })

    test(`${name}: any split of its bytes gives the same frames and facts`, () => {
      const whole = framesOf(bytes)
      const facts = factsOf(dialect, whole)
      const check = (cuts: readonly number[]) => {
        const frames = framesOf(bytes, cuts)
        expect(Buffer.concat(frames.map((frame) => frame.bytes)).equals(bytes)).toBe(true)
        expect(frames.map(({ event, data }) => [event, data])).toEqual(whole.map(({ event, data }) => [event, data]))
        expect(factsOf(dialect, frames)).toEqual(facts)
      }
      if (bytes.length < 1500) for (let cut = 1; cut < bytes.length; cut++) check([cut])
      const cuts = fc.array(fc.integer({ min: 1, max: bytes.length - 1 }), { maxLength: 30 })
      fc.assert(
        fc.property(cuts, (at) => check(at.sort((a, b) => a - b))),
        { numRuns: bytes.length > 50_000 ? 5 : 30 },
      )
    })

    test(`${name}: keeps its bytes if it is opened and not changed`, () => {
      const frames = framesOf(bytes).filter(({ data }) => !data?.includes('"logprobs":[{'))
      const passed = heldBack(dialect, frames, () => 0)
      expect(Buffer.concat(passed.map((frame) => frame.bytes)).toString()).toBe(
        Buffer.concat(frames.map((frame) => frame.bytes)).toString(),
      )
    })

    test(`${name}: text that is held back and let go arrives whole`, () => {
      const frames = framesOf(bytes)
      const expected = receivedFrom(dialect, frames)
      fc.assert(
        fc.property(fc.array(fc.nat({ max: 40 }), { minLength: 1, maxLength: 50 }), (holds) => {
          let turn = 0
          const passed = heldBack(dialect, frames, () => holds[turn++ % holds.length] ?? 0)
          expect(receivedFrom(dialect, passed)).toEqual(expected)
          expect(factsOf(dialect, passed).at(-1)).toEqual(factsOf(dialect, frames).at(-1))
        }),
        { numRuns: bytes.length > 50_000 ? 3 : 20 },
      )
    })
  }
})

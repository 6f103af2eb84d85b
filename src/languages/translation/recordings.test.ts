/**
 * Streams recorded from providers, translated to each language that applications speak and read by its official client:
 * text, tool calls and usage are those of the original, and any split of the bytes gives the same events.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { chat as chatDialect } from '../chat/dialect.ts'
import { chat } from '../chat/translation/language.ts'
import { messages as messagesDialect } from '../messages/dialect.ts'
import { messages } from '../messages/translation/language.ts'
import type { NeutralEvent } from '../neutral.ts'
import { responses as responsesDialect } from '../responses/dialect.ts'
import { responses } from '../responses/translation/language.ts'
import {
  eventsOf,
  figures,
  type Gathered,
  gathered,
  readByChatClient,
  readByMessagesClient,
  readByResponsesClient,
  written,
} from '../testing/clients.ts'
import { factsOf, framesOf, recordings } from '../testing/streams.ts'
import { collected } from './collect-stream.ts'

const all = [
  ...recordings('openai-chat').map((recording) => ({ ...recording, from: chat.provider })),
  ...recordings('openai-responses').map((recording) => ({ ...recording, from: responses.provider })),
  ...recordings('anthropic-messages').map((recording) => ({ ...recording, from: messages.provider })),
]
/** Recorded with its last event over many lines, which are frames that hold no object: the answer is broken off there. */
const broken = 'parallel-tool-call-wrapper.1.chunks.txt'
/** The provider failed, or called a tool of a kind that cannot be asked for through another language. */
const failing: Record<string, string> = {
  'openai-error.1.chunks.txt': 'insufficient_quota',
  'openai-custom-tool.1.chunks.txt': 'upstream_provider_error',
}

const callers = [
  { language: chat, dialect: chatDialect, read: readByChatClient },
  { language: responses, dialect: responsesDialect, read: readByResponsesClient },
  { language: messages, dialect: messagesDialect, read: readByMessagesClient },
]
const writtenTo = (events: readonly NeutralEvent[]) =>
  callers.map(({ language, ...caller }) => ({ ...caller, language, stream: written(language.caller, events) }))

/** Calls as their clients have them, who parse the arguments; not those that the provider itself broke off. */
function objectsIn(calls: Gathered['calls']) {
  return calls.map((call) => ({ ...call, arguments: call.id === 'toolu_first' ? null : JSON.parse(call.arguments) }))
}

describe('recorded streams', () => {
  test('a stream that holds a broken frame is broken off there', () => {
    const thrown = all
      .filter(({ name }) => name === broken)
      .map(
        ({ from, bytes }) =>
          () =>
            eventsOf(from, bytes),
      )
    expect(thrown).toHaveLength(1)
    for (const reading of thrown) expect(reading).toThrow('a frame that holds no object')
  })

  for (const { from, name, bytes } of all.filter(({ name }) => name !== broken)) {
    const events = eventsOf(from, bytes)
    const told = gathered(events)

    test(`${name}: any split of its bytes gives the same events`, () => {
      const cuts = fc.array(fc.integer({ min: 1, max: bytes.length - 1 }), { maxLength: 30 })
      const split = (at: readonly number[]) =>
        eventsOf(
          from,
          bytes,
          at.toSorted((left, right) => left - right),
        )
      fc.assert(
        fc.property(cuts, (at) => expect(split(at)).toEqual(events)),
        { numRuns: bytes.length > 50_000 ? 2 : 10 },
      )
    })

    if (failing[name] !== undefined) {
      test(`${name}: the error arrives as an error of every client`, async () => {
        expect(told.errors).toEqual([failing[name] ?? ''])
        for (const { stream, read } of writtenTo(events)) {
          const thrown: unknown = await read(stream).catch((error: unknown) => error)
          expect(thrown).toBeInstanceOf(Error)
          expect(stream).toContain(`"code":"${failing[name]}"`)
        }
      })
    } else {
      test(`${name}: every client reads its text, calls and usage, and so does the gateway`, async () => {
        expect(events.at(-1)).toEqual({ type: 'end' })
        expect(told.text.length + told.calls.length + told.refusal.length).toBeGreaterThan(0)
        for (const { dialect, stream, read } of writtenTo(events)) {
          const { finish, calls, ...rest } = await read(stream)
          expect({ ...told, ...rest }).toEqual(told)
          expect(objectsIn(calls)).toEqual(objectsIn(told.calls))
          const facts = factsOf(dialect, framesOf(Buffer.from(stream)))
          expect(facts.filter(({ terminal }) => terminal)).toHaveLength(1)
          expect(figures(facts.at(-1)?.usage ?? null)).toEqual(told.usage)
        }
      })

      test(`${name}: each translation, read as a provider's, gives the same parts`, () => {
        for (const { language, stream } of writtenTo(events)) {
          const again = gathered(eventsOf(language.provider, Buffer.from(stream)))
          // Chat has one text for all thoughts, with an empty line between two.
          const thoughts = again.thoughts.replaceAll('\n\n', '')
          const expected = { ...told, thoughts: told.thoughts.replaceAll('\n\n', ''), calls: objectsIn(told.calls) }
          expect({ ...again, thoughts, calls: objectsIn(again.calls) }).toEqual(expected)
        }
      })
    }
  }

  test('joins a message that begins twice into one answer', () => {
    const spliced = all.find(({ name }) => name.startsWith('spliced'))?.bytes ?? Buffer.alloc(0)
    const { parts, finish } = collected(eventsOf(messages.provider, spliced))
    expect(parts.map(({ kind }) => kind)).toEqual(['thought', 'tool_call', 'thought', 'tool_call'])
    expect(finish).toBe('tool_calls')
  })
})

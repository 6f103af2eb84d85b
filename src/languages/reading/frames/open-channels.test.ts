import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { chat } from '../../chat/dialect.ts'
import type { Dialect } from '../../dialect.ts'
import { messages } from '../../messages/dialect.ts'
import { responses } from '../../responses/dialect.ts'
import { framesOf, openNext, start } from '../../testing/streams.ts'
import { OpenChannels } from './open-channels.ts'

/** The same said plainly: every end goes through all channels that there have been. */
class AllChannels {
  readonly known: { name: string; groups: readonly number[]; ended: boolean }[] = []

  end(groups: readonly number[], isAsked: (name: string) => boolean): string[] {
    const ended = this.known.filter(
      (each) => !each.ended && each.groups.some((group) => groups.includes(group)) && isAsked(each.name),
    )
    for (const each of ended) each.ended = true
    return ended.map(({ name }) => name)
  }
}

test('ends the open and accepted channels of a group in the order in which they came', () => {
  const group = fc.integer({ min: 0, max: 3 })
  const groups = fc.uniqueArray(group, { maxLength: 3 })
  const step = fc.oneof(
    fc.record({ add: groups }),
    fc.record({ reopen: fc.nat(20) }),
    fc.record({ end: groups, letter: fc.constantFrom('a', 'b', '') }),
    fc.record({ endAll: fc.constant(true) }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const channels = new OpenChannels<{ ended: boolean }, number>()
      const plain = new AllChannels()
      for (const given of steps) {
        if ('add' in given) {
          const name = `${plain.known.length % 2 === 0 ? 'a' : 'b'}${plain.known.length}`
          channels.add(name, { ended: false }, given.add)
          plain.known.push({ name, groups: given.add, ended: false })
        } else if ('reopen' in given) {
          const known = plain.known[given.reopen]
          if (known === undefined) continue
          known.ended = false
          channels.reopen(known.name)
        } else if ('end' in given) {
          const isAsked = (name: string) => name.startsWith(given.letter)
          expect(channels.end(given.end, isAsked)).toEqual(plain.end(given.end, isAsked))
        } else {
          expect(channels.endAll()).toEqual(plain.known.filter(({ ended }) => !ended).map(({ name }) => name))
          for (const known of plain.known) known.ended = true
        }
        for (const { name, ended } of plain.known) expect(channels.get(name)?.ended).toBe(ended)
      }
    }),
  )
})

const data = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`
const times = (count: number, frame: (index: number) => unknown) =>
  Array.from({ length: count }, (_, index) => data(frame(index))).join('')

const callOf = (index: number) => ({ index, id: `call_${index}`, function: { name: 'get', arguments: '{}' } })
const choice = (index: number, more: object) => ({ id: 'c', choices: [{ index, delta: {}, ...more }] })

/** Streams in which so many calls, choices, items, parts or blocks end one by one. */
const streams: Readonly<Record<string, readonly [Dialect, (count: number) => string]>> = {
  calls: [chat, (count) => times(count, (at) => choice(0, { delta: { tool_calls: [callOf(at)] } }))],
  'calls numbered 0': [
    chat,
    (count) => times(count, (at) => choice(0, { delta: { tool_calls: [{ ...callOf(at), index: 0 }] } })),
  ],
  choices: [
    chat,
    (count) =>
      times(count, (at) => choice(at, { delta: { content: 'hello' } })) +
      times(count, (at) => choice(at, { finish_reason: 'stop' })),
  ],
  items: [
    responses,
    (count) =>
      times(count, (at) => ({
        type: 'response.output_text.delta',
        output_index: at,
        content_index: 0,
        delta: 'hello',
      })) + times(count, (at) => ({ type: 'response.output_item.done', output_index: at, item: {} })),
  ],
  parts: [
    responses,
    (count) =>
      times(count, (at) => ({
        type: 'response.output_text.delta',
        output_index: 0,
        content_index: at,
        delta: 'hello',
      })) +
      times(count, (at) => ({ type: 'response.output_text.done', output_index: 0, content_index: at, text: 'hello' })),
  ],
  blocks: [
    messages,
    (count) =>
      times(count, (index) => ({ type: 'content_block_delta', index, delta: { type: 'text_delta', text: 'hello' } })) +
      times(count, (index) => ({ type: 'content_block_stop', index })),
  ],
}

/** Processor time that one of so many takes, in microseconds: the least of several goes. */
function costOfEach(dialect: Dialect, stream: string, count: number, goes: number): number {
  const frames = framesOf(Buffer.from(stream))
  let least = Number.POSITIVE_INFINITY
  for (let go = 0; go < goes; go++) {
    const before = process.cpuUsage()
    const reader = dialect.reader(start)
    for (const frame of frames) openNext(reader, frame)
    const { user, system } = process.cpuUsage(before)
    least = Math.min(least, (user + system) / count)
  }
  return least
}

test('the cost of one call, choice, item, part or block does not grow with their number', () => {
  const grown = Object.entries(streams).filter(([, [dialect, stream]]) => {
    const few = costOfEach(dialect, stream(400), 400, 12)
    const many = costOfEach(dialect, stream(8000), 8000, 2)
    return many > 8 * few
  })
  expect(grown.map(([name]) => name)).toEqual([])
}, 30_000)

import { expect, spyOn, test } from 'bun:test'
import { BufferedText } from './buffered-text.ts'
import { patternDetector } from './regex/pattern-detector.ts'
import { feedPieces, ruleOf } from './testing/passing.ts'
import { WorkBudget } from './work-budget.ts'

test('returns the appended text at whole-text offsets until it is dropped', () => {
  const whole = Array.from({ length: 9000 }, (_, index) => String.fromCharCode(0x21 + (index % 90))).join('')
  const held = new BufferedText()
  for (let at = 0; at < whole.length; ) {
    const until = Math.min(whole.length, at + ((at * 7) % 131) + 1)
    held.append(whole.slice(at, until))
    at = until
  }
  for (const start of [0, 1, 1023, 1024, 3000, 8990, 9000]) {
    held.dropBefore(start)
    expect([held.start, held.end]).toEqual([start, whole.length])
    expect(held.slice(start, whole.length)).toBe(whole.slice(start))
    for (const from of [start, start + 700, start + 1500]) {
      expect(held.slice(from, from + 900)).toBe(whole.slice(from, from + 900))
      if (from < whole.length) expect(held.unitAt(from)).toBe(whole.charCodeAt(from))
    }
  }
  held.append('next')
  expect(held.slice(held.start, held.end)).toBe('next')
})

/** The units that are copied when the joined pieces are read, and the moves of the pattern. */
function workOf(pattern: string, unit: string, units: number, kind: 'content' | 'tool_arguments') {
  let copied = 0
  const { append } = BufferedText.prototype
  const spy = spyOn(BufferedText.prototype, 'append').mockImplementation(function (this: BufferedText, piece: string) {
    append.call(this, piece)
    copied += this.last.length
  })
  const work = new WorkBudget()
  const detector = patternDetector([{ label: 'X', pattern }], { streaming: false, paramOf: String })
  const text = unit.repeat(units / unit.length)
  const pieces = Array.from({ length: units / 64 }, (_, index) => text.slice(index * 64, index * 64 + 64))
  const passed = feedPieces([ruleOf(detector, 'redact', { work })], pieces, kind)
  spy.mockRestore()
  return { copied, moves: work.moves, passed }
}

test('does work linear in the text length while a pattern stays live', () => {
  for (const kind of ['content', 'tool_arguments'] as const) {
    for (const [pattern, unit] of [
      ['[a-z]+[0-9]', 'a'],
      ['(a|aa)+$', 'a'],
      ['[^x]+x', 'a😀b'],
      ['x[^;]*;|ab', 'abxy'],
    ] as const) {
      const one = workOf(pattern, unit, 64_000, kind)
      const two = workOf(pattern, unit, 128_000, kind)
      expect([pattern, two.moves / one.moves < 2.3, two.copied / one.copied < 2.3]).toEqual([pattern, true, true])
      expect(two.copied).toBeLessThan(128_000 * 64)
    }
  }
})

test('finds a match of any length', () => {
  const detector = patternDetector([{ label: 'X', pattern: '[a-z]+[0-9]' }], { streaming: false, paramOf: String })
  const pieces = ['-', ...Array.from({ length: 2000 }, () => 'a'.repeat(64)), '1', '-']
  expect(feedPieces([ruleOf(detector, 'redact')], pieces).text).toBe('-[X]-')
  expect(feedPieces([ruleOf(detector, 'redact')], ['["', ...pieces, '"]'], 'tool_arguments').text).toBe('["-[X]-"]')
})

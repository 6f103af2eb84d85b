import { expect, test } from 'bun:test'
import { plain, visible } from './said.tsx'

test('writes out invisible characters and keeps joiners inside an emoji', () => {
  expect(visible('gpt\u202e4 a\u200db \u2800\u3164')).toBe('gpt⟨U+202E⟩4 a⟨U+200D⟩b ⟨U+2800⟩⟨U+3164⟩')
  for (const joined of ['👩\u200d🚀', '🧑🏽\u200d🚀', '🏳\ufe0f\u200d🌈', '👨\u200d👩\u200d👧'])
    expect(visible(joined)).toBe(joined)
  expect(visible('🚀\u200dx')).toBe('🚀⟨U+200D⟩x')
  expect(visible('a\n\tb')).toBe('a\n\tb')
})

test('ignores characters that cannot be typed when it compares names', () => {
  expect(plain('two  \u200bblanks\u2800 ')).toBe('two blanks')
})

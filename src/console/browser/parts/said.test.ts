import { expect, test } from 'bun:test'
import { plain, visible } from './said.tsx'

test('what cannot be seen is written out, and what joins two pictures into one stays', () => {
  expect(visible('gpt\u202e4 a\u200db \u2800\u3164')).toBe('gpt⟨U+202E⟩4 a⟨U+200D⟩b ⟨U+2800⟩⟨U+3164⟩')
  for (const joined of ['👩\u200d🚀', '🧑🏽\u200d🚀', '🏳\ufe0f\u200d🌈', '👨\u200d👩\u200d👧'])
    expect(visible(joined)).toBe(joined)
  expect(visible('🚀\u200dx')).toBe('🚀⟨U+200D⟩x')
  expect(visible('a\n\tb')).toBe('a\n\tb')
})

test('a name is the same however much of it cannot be typed', () => {
  expect(plain('two  \u200bblanks\u2800 ')).toBe('two blanks')
})

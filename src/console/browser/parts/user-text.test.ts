import { expect, test } from 'bun:test'
import { comparableText, showInvisible } from './user-text.tsx'

test('writes out invisible characters and keeps joiners inside an emoji', () => {
  expect(showInvisible('gpt\u202e4 a\u200db \u2800\u3164')).toBe('gpt⟨U+202E⟩4 a⟨U+200D⟩b ⟨U+2800⟩⟨U+3164⟩')
  for (const joined of ['👩\u200d🚀', '🧑🏽\u200d🚀', '🏳\ufe0f\u200d🌈', '👨\u200d👩\u200d👧'])
    expect(showInvisible(joined)).toBe(joined)
  expect(showInvisible('🚀\u200dx')).toBe('🚀⟨U+200D⟩x')
  expect(showInvisible('a\n\tb')).toBe('a\n\tb')
})

test('ignores characters that cannot be typed when it compares names', () => {
  expect(comparableText('two  \u200bblanks\u2800 ')).toBe('two blanks')
})

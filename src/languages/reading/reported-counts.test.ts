/** Which counts of a provider's usage are believed. */
import { expect, test } from 'bun:test'
import { readAudioUsage } from '../audio/usage.ts'
import { readUsage as readChatUsage } from '../chat/answer.ts'
import { readUsage as readMessagesUsage } from '../messages/texts.ts'
import { countOf } from './json-value.ts'

test('reads counts that a provider reports as strings of digits', () => {
  expect(readChatUsage({ prompt_tokens: '12', completion_tokens: '7' })).toMatchObject({
    inputTokens: 12,
    outputTokens: 7,
  })
  expect(readMessagesUsage({ input_tokens: '3', cache_read_input_tokens: '4', output_tokens: 2 })).toMatchObject({
    inputTokens: 7,
    outputTokens: 2,
  })
  expect(readAudioUsage({ seconds: '1.5' })).toMatchObject({ audioSeconds: 1.5 })
})

test('takes an impossible count for one that was not reported', () => {
  const impossible = [
    -1,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    1.5,
    2 ** 53,
    1e12 + 1,
    '',
    '-1',
    '1.5',
    '1e3',
    ' 1',
    '0x1',
    true,
    null,
  ]
  expect(impossible.map(countOf)).toEqual(impossible.map(() => null))
  expect([0, 1e12, '0', '1000000000000'].map(countOf)).toEqual([0, 1e12, 0, 1e12])
  for (const seconds of [-1, Number.NaN, Number.POSITIVE_INFINITY, 1e9, '1e3', '']) {
    expect(readAudioUsage({ seconds })).toBeNull()
  }
})

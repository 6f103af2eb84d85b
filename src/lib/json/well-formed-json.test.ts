import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { wellFormedJson } from './well-formed-json.ts'

test('replaces every unpaired surrogate with U+FFFD and changes nothing else', () => {
  expect(wellFormedJson({ 'a\ud800': ['\udfffb', 'A\ud83d\ude00', '\\ud800', '\\\ud800'] })).toBe(
    JSON.stringify({ 'a\ufffd': ['\ufffdb', 'A\ud83d\ude00', '\\ud800', '\\\ufffd'] }),
  )
})

test('any text comes back as toWellFormed has it', () => {
  const unit = fc.constantFrom('a', '\\', '"', 'u', 'd', '8', '0', '\ud800', '\udc00', '\0', '\ud83d', '\ude00')
  fc.assert(
    fc.property(fc.array(unit), (units) => {
      const text = units.join('')
      expect(JSON.parse(wellFormedJson([text]))).toEqual([text.toWellFormed()])
    }),
  )
})

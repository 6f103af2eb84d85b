import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { RE2JS } from 're2js'
import { patternSearch } from './pattern-search.ts'

const atoms = ['a', 'b', 'é', '.', '\\w', '[^a]', '(?:ab|b)', '^', '$', '\\b', '\\B', '(?m:^)', '(?i:A)', '𝄞', '\\n']
const pattern = fc
  .array(fc.tuple(fc.constantFrom(...atoms), fc.constantFrom('', '', '*', '+?', '?', '{2}')), {
    minLength: 1,
    maxLength: 4,
  })
  .map((parts) => parts.map(([atom, count]) => `(?:${atom})${count}`).join(''))
const text = fc.string({ unit: fc.constantFrom(...'aabbé𝄞A \n'), maxLength: 8 })

test('finds in pieces of a text what the library finds in the whole', () => {
  fc.assert(
    fc.property(pattern, text, fc.nat(8), (source, subject, cut) => {
      const compiled = RE2JS.compile(source)
      const search = patternSearch(compiled)
      search?.push(subject.slice(0, cut))
      search?.push(subject.slice(cut))
      search?.end()
      expect(search?.found).toBe(compiled.matcher(subject).find())
    }),
    { numRuns: 2000 },
  )
})

test('leaves a pattern that looks behind to the library', () => {
  const behind = RE2JS.compile('(?<=a)b', RE2JS.LOOKBEHINDS)
  expect(patternSearch(behind)).toBeNull()
})

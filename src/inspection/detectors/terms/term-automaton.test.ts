import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { buildAutomaton } from './term-automaton.ts'

const letters = (most: number, length: { minLength: number; maxLength: number }) =>
  fc.array(fc.integer({ min: 0x61, max: most }), length)

test('finds the same terms by its table and by its steps', () => {
  const keys = fc.array(letters(0x64, { minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 8 })
  fc.assert(
    fc.property(keys, letters(0x65, { minLength: 0, maxLength: 30 }), (terms, text) => {
      const automaton = buildAutomaton(terms)
      expect(automaton.maxDepth).toBe(Math.max(...terms.map(({ length }) => length)))
      let state = 0
      for (const [index, codePoint] of text.entries()) {
        const symbol = automaton.symbolOf(codePoint)
        const next = automaton.step(state, symbol)
        expect(automaton.table?.[state * automaton.width + symbol]).toBe(next)
        state = next
        const ended: number[] = []
        for (let end = automaton.ending(state); end !== 0; end = automaton.ending(automaton.shorter(end))) {
          ended.push(...automaton.termsAt(end))
        }
        const read = String.fromCodePoint(...text.slice(0, index + 1))
        const ending = terms.flatMap((term, each) => (read.endsWith(String.fromCodePoint(...term)) ? [each] : []))
        expect(ended.toSorted((one, other) => one - other)).toEqual(ending)
      }
    }),
    { numRuns: 500 },
  )
})

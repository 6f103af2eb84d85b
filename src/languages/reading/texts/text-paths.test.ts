import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { objectWith, outermost } from './text-paths.ts'
import { textsIn } from './texts.ts'

/** Names that look like other places. */
const name = fc.string({ unit: fc.constantFrom('a', '/', '#', '[', ']', '~', '%', '0', '2', 'f'), maxLength: 5 })
const path = fc.array(name, { minLength: 1, maxLength: 4 })

const nested = ([first = '', ...rest]: readonly string[]): Record<string, unknown> => ({
  [first]: rest.length === 0 ? 'said' : nested(rest),
})

test('reads the place of a text back as its members, for any names', () => {
  fc.assert(
    fc.property(path, (names) => {
      const [found, ...others] = textsIn(nested(names))
      expect(others).toEqual([])
      expect(objectWith(found?.place ?? '', 'said')).toEqual(nested(names))
      expect(outermost(found?.place ?? '')).toBe(names[0] ?? '')
    }),
  )
})

test('a text of a numbered element or of a typed part is written as it came', () => {
  for (const value of [
    { x: [{ index: -1, y: 'said' }] },
    { x: [{ index: 7, y: 'said' }] },
    { x: [{ type: 'text', text: 'said' }] },
  ]) {
    const [found] = textsIn(value, { joinParts: true })
    expect(objectWith(found?.place ?? '', 'said')).toEqual(value)
  }
})

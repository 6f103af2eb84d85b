import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { withNumbersOf } from './keep-numbers.ts'

const id = '12345678901234567890'
const near = '12345678901234567891'

/** The text after a policy changed what it was parsed to. */
const after = (text: string, change: (body: ReturnType<typeof JSON.parse>) => unknown): string => {
  const body = JSON.parse(text)
  return withNumbersOf(text, change(body) ?? body)
}

describe('withNumbersOf() keeps every digit', () => {
  test('of numbers beside a text that was changed', () => {
    const text = `[{"text":"a secret","ids":[${id},${near},1.50],"zero":-0,"huge":1e400}]`
    expect(
      after(text, (body) => {
        body[0].text = '[secret]'
      }),
    ).toBe(`[{"text":"[secret]","ids":[${id},${near},1.5],"zero":-0,"huge":1e400}]`)
  })

  test('where an element was put before the others or taken from among them, changed ones too', () => {
    const text = `[{"say":"one","id":${id}},{"say":"two","id":${near},"more":1}]`
    expect(after(text, (body) => ['new', ...body])).toBe(`["new",${text.slice(1)}`)
    expect(after(text, ([, second]) => [{ ...second, say: '[two]' }])).toBe(`[{"say":"[two]","id":${near},"more":1}]`)
  })

  test('of members whose names were changed, also where one has the name of another now', () => {
    const text = `[{"a@b.co":${id},"[EMAIL]":{"c@d.co":${near},"x":["q",${id}]},"z":${near}}]`
    expect(
      after(text, ([{ 'a@b.co': first, '[EMAIL]': second, z }]) => [
        { '[EMAIL]': first, '[EMAIL] 2': { '[EMAIL]': second['c@d.co'], x: ['changed', second.x[1]] }, z },
      ]),
    ).toBe(`[{"[EMAIL]":${id},"[EMAIL] 2":{"[EMAIL]":${near},"x":["changed",${id}]},"z":${near}}]`)
  })

  test("does not keep the digits of a policy's own number or of an ambiguous one", () => {
    expect(after(`{"seed":${id}}`, () => ({ seed: 7, other: 1e30 }))).toBe('{"seed":7,"other":1e+30}')
    const text = `[{"say":"a","id":${id}},{"say":"b","id":${near}}]`
    expect(after(text, () => [{ say: 'c', id: Number(id) }])).toBe('[{"say":"c","id":12345678901234567000}]')
  })

  test('keeps the digits of every unchanged number', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.bigInt({ min: 2n ** 60n, max: 2n ** 80n }), (value, big) => {
        const text = `{"value":${JSON.stringify(value)},"id":${big}}`
        const written = after(text, () => undefined)
        expect(JSON.parse(written)).toEqual(JSON.parse(text))
        expect(written).toEndWith(`"id":${big}}`)
      }),
    )
  })
})

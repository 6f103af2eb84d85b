import { expect, test } from 'bun:test'
import { compileWhen } from '../../../../policies/conditions/condition.ts'
import { completionsAt, placeOf } from './condition-completions.ts'

const texts = (condition: string, answered = false) =>
  completionsAt(condition, condition.length, { answered }).found.map(({ text }) => text)

test('offers variables, then their members, then the functions of a member', () => {
  expect(texts('')).toEqual(['request', 'token', 'model', 'now'])
  expect(texts('', true)).toContain('response')
  expect(texts('!request.stream && tok')).toEqual(['token'])
  expect(texts('request.te')).toEqual(['text'])
  expect(texts('request.text.st')).toEqual(['startsWith("")'])
  expect(texts('"x" in request.tools && request.tools.')).toContain('exists(one, one == "")')
  expect(texts('request.model.text.')).toEqual([])
  expect(texts('nothing.')).toEqual([])
})

test('offers nothing within a quoted text', () => {
  expect(texts('request.text.contains("req')).toEqual([])
  expect(texts('request.text == "a\\"" && req')).toEqual(['request'])
})

test('every member that is offered is one that the API accepts', () => {
  for (const answered of [false, true]) {
    for (const variable of texts('', answered).filter((name) => name !== 'now')) {
      for (const member of texts(`${variable}.`, answered)) {
        const path = `${variable}.${member}`
        const stage = answered ? 'pre_response' : 'pre_request'
        compileWhen(`[${path}].size() > 0`, [stage])
        for (const called of texts(`${path}.`, answered).filter((text) => text.includes('('))) {
          const whole = `${path}.${called.replace('""', '"a"')}`
          compileWhen(/^(size|get)/.test(called) ? `${whole} > 0` : whole, [stage])
        }
      }
    }
  }
  for (const called of texts('now.')) compileWhen(`now.${called} > 0`, ['pre_request'])
})

test('finds the place that a refusal names', () => {
  expect(placeOf('The condition is not valid: No such key (at character 9)', 'a\nrequest.txt')).toEqual({
    ...{ line: 2, column: 7, at: 8 },
  })
  expect(placeOf('Something else', 'request')).toBeNull()
})

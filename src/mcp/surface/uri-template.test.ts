import { expect, test } from 'bun:test'
import { coveredBy } from './uri-template.ts'

test.each([
  ['x://a/{id}', 'x://a/1', true],
  ['x://a/{id}', 'x://a/1/2', false],
  ['x://a/{id}', 'x://a/', false],
  ['x://a/{id}/data', 'x://a/1/data', true],
  ['x://a.b/{id}', 'x://aXb/1', false],
  ['x://{+path}', 'x://a/b/c?d', true],
  ['x://a{/more}', 'x://a/b/c', true],
  ['x://a{?q,r}', 'x://a?q=1&r=2', true],
  ['x://a{?q}', 'x://a', true],
  ['x://a{?q}', 'x://ab', false],
  ['x://{id', 'x://{id', true],
  ['x://fixed', 'x://fixed/more', false],
])('template %s covers %s: %p', (template, uri, covered) => {
  expect(coveredBy(template, uri)).toBe(covered)
})

test('matches long templates and long addresses quickly', () => {
  expect(coveredBy(`x://${'{a}{b}'.repeat(50)}`, `x://${'y'.repeat(8000)}/`)).toBe(false)
})

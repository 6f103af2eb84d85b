import { expect, test } from 'bun:test'
import { checkContent, contentOf, createPolicyBody } from '../../../../policies/policy-body.ts'
import { startingPoints } from './starting-points.ts'

test.each(startingPoints.map(({ name, body }) => [name, body] as const))('%s can be saved as it is', (_name, body) => {
  const read = createPolicyBody.parse(body)
  checkContent(contentOf(read))
  expect(read.name).toBe(body.name)
})

test('every starting point has a name of its own', () => {
  expect(new Set(startingPoints.map(({ name }) => name)).size).toBe(startingPoints.length)
})

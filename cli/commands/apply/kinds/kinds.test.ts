import { expect, test } from 'bun:test'
import { recordPaths } from '../../../../src/api/together/record-paths.ts'
import { kinds } from './kinds.ts'

test('the control plane makes changes of every kind together', () => {
  expect(kinds.map(({ path }) => path).toSorted()).toEqual(Object.keys(recordPaths).toSorted())
})

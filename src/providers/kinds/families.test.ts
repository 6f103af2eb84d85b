import { expect, test } from 'bun:test'
import { modelFamilies } from '../../languages/families.ts'
import { serves } from '../provider.ts'
import { simulator } from '../simulator/simulator.ts'
import { providerKinds } from './index.ts'

test('every family that models answer is answered by a kind of provider beside the simulator', () => {
  const real = [...providerKinds.values()].filter((kind) => kind !== simulator)
  expect(modelFamilies.filter((family) => !real.some((kind) => serves(kind, family)))).toEqual([])
})

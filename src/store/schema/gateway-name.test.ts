import { expect, test } from 'bun:test'
import { temporaryStore } from '../testing/store.ts'
import { changeName, dropName, keepName, readNames } from './gateway-name.ts'

test('shows a gateway by its name, or by its id if it has none', async () => {
  const store = await temporaryStore()
  const nameOf = async () => (await readNames(store.ledger, ['g', 'unknown']))('g')
  await store.ledger.write([keepName('g', 'edge of the shop')])
  expect(await nameOf()).toBe('edge of the shop')
  await store.ledger.write([changeName('g', 'edge')])
  expect(await nameOf()).toBe('edge')
  await store.ledger.write([dropName('g')])
  expect(await nameOf()).toBe('g')
  store.remove()
})

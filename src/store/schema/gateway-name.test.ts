import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type TemporaryStore, temporaryStore } from '../testing/store.ts'
import { moveNames, nameDigest, readNames } from './gateway-name.ts'

let store: TemporaryStore
beforeAll(async () => {
  store = await temporaryStore()
})
afterAll(() => store.remove())

test('a name that a former version wrote where every host reads it is moved to the ledger, once', async () => {
  await store.state.write([
    { sql: "insert into gateways (id, name, version) values ('g', 'edge of the shop', 0)", args: [] },
  ])
  await moveNames(store)
  await moveNames(store)
  const rows = await store.state.read<{ name: string }>('select name from gateways')
  expect(rows).toEqual([{ name: nameDigest('edge of the shop') }])
  const names = await readNames(store.ledger, ['g', 'unknown'])
  expect([names('g'), names('unknown')]).toEqual(['edge of the shop', 'unknown'])
})

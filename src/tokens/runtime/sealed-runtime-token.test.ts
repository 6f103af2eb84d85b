import { afterEach, beforeEach, expect, test } from 'bun:test'
import { hashSecret } from '../../identity/secret.ts'
import { keepSecret } from '../../store/keys/secrets.ts'
import { testMasterKey } from '../../store/testing/master-key.ts'
import { type TemporaryStore, temporaryStore } from '../../store/testing/store.ts'
import { lookForRotation, resealed, sealedRuntimeToken } from './sealed-runtime-token.ts'

let store: TemporaryStore
const masterKey = testMasterKey()

beforeEach(async () => {
  store = await temporaryStore()
})
afterEach(() => store.remove())

test('hands over a runtime token once that another control plane has rotated', async () => {
  const kept = { ledger: store.ledger, masterKey }
  await store.ledger.write([keepSecret(masterKey, sealedRuntimeToken.name, 'gth_first', 1)])
  const told: string[] = []
  const look = lookForRotation(kept, 'gth_first', (secret) => told.push(secret))
  await look()
  expect(told).toEqual([])
  await store.ledger.write(await resealed(kept, hashSecret('gth_first'), 'gth_second'))
  await look()
  await look()
  expect(told).toEqual(['gth_second'])
})

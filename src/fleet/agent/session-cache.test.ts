import { afterEach, beforeEach, expect, spyOn, test } from 'bun:test'
import { hashSecret, makeSecret } from '../../identity/secret.ts'
import { newId } from '../../lib/ids.ts'
import { type TemporaryStore, temporaryStore } from '../../store/testing/store.ts'
import { RuntimeTokens } from '../coordinator/runtime-token.ts'
import { StateHead } from '../state/state-head.ts'
import { movableClock, randomBytes } from '../testing/temporary-fleet.ts'
import { SessionCache } from './session-cache.ts'

let store: TemporaryStore
let sessions: SessionCache
let stateHead: StateHead
let clock: ReturnType<typeof movableClock>
const secret = makeSecret('session', randomBytes)
const [tokenId, gatewayId, instanceId] = [newId(), newId(), newId()]

beforeEach(async () => {
  store = await temporaryStore()
  clock = movableClock()
  const unheard = { onRestored: () => undefined, onForeignLog: () => undefined }
  stateHead = new StateHead({ state: store.state, clock }, unheard)
  sessions = new SessionCache({
    ledger: store.ledger,
    stateHead,
    tokens: new RuntimeTokens(store.state, clock),
    clock,
  })
  await store.state.write([
    {
      sql: `insert into tokens (id, hash, purpose, principal_type, key_class, gateway_id, roles, policy_ids,
         access_policy_ids, metadata_trust, owner_kind, owner_id, account_ids, version)
       values (?, ?, 'gateway_runtime', 'gateway_runtime', 'durable', ?, '["runtime"]', '[]', '[]', 'none', 'team', 'team', '[]', 0)`,
      args: [tokenId, hashSecret(newId()), gatewayId],
    },
  ])
  await store.ledger.write([
    {
      sql: `insert into runtime_sessions (hash, token_id, gateway_id, instance_id, expires_at, gateway_version)
        values (?, ?, ?, ?, ?, '')`,
      args: [hashSecret(secret), tokenId, gatewayId, instanceId, clock.now() + 900_000],
    },
  ])
})
afterEach(() => store.remove())

const ask = (bearer = secret) =>
  sessions.principal(new Request('http://localhost/', { headers: { authorization: `Bearer ${bearer}` } }))

/** Ends the runtime token in the next version of the state. */
const revoke = () =>
  store.state.write([
    { sql: 'update state_head set version = version + 1, nonce = ?', args: [newId()] },
    { sql: 'update tokens set revoked_at = 1', args: [] },
  ])

test('a gateway that calls again costs no read, and many calls after a change cost one', async () => {
  expect(await ask()).toMatchObject({ kind: 'runtime', tokenId, gatewayId, instanceId })
  const reads = [spyOn(store.state, 'read'), spyOn(store.ledger, 'read')] as const
  for (let call = 0; call < 5; call++) expect(await ask()).not.toBeNull()
  const { head } = await stateHead.recent()
  stateHead.announced({ ...head, version: head.version + 1, nonce: newId() })
  await Promise.all(Array.from({ length: 20 }, () => ask()))
  expect(reads.map(({ mock }) => mock.calls.length)).toEqual([1, 0])
})

test('a session ends with its runtime token, as soon as the version that revoked it is known', async () => {
  expect(await ask()).not.toBeNull()
  await revoke()
  const { head } = await stateHead.recent()
  stateHead.announced({ ...head, version: head.version + 1, nonce: newId() })
  expect(await ask()).toBeNull()
})

test('a session ends within a second when no version is announced', async () => {
  expect(await ask()).not.toBeNull()
  await revoke()
  clock.skip(1001)
  expect(await ask()).toBeNull()
})

test('leaves an unknown, expired or deleted session to the databases', async () => {
  expect(await ask()).not.toBeNull()
  await store.ledger.write([{ sql: 'delete from runtime_sessions', args: [] }])
  clock.skip(10_001)
  expect(await ask()).toBeNull()
  expect(await ask(makeSecret('session', randomBytes))).toBeNull()
  expect(await ask(makeSecret('token', randomBytes))).toBeNull()
})

test('while the primary is unreachable the last known version counts', async () => {
  expect(await ask()).not.toBeNull()
  clock.skip(5000)
  spyOn(store.state, 'read').mockRejectedValue(new Error('It does not answer'))
  expect(await ask()).not.toBeNull()
})

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { type Event, noAttribution } from '../../events/event.ts'
import { testEvent } from '../../events/testing/ledger.ts'
import { newId } from '../../lib/ids.ts'
import { type TemporaryStore, temporaryStore } from '../../store/testing/store.ts'
import { createLastUse } from './last-use.ts'

const noon = Date.parse('2026-05-01T12:00:00Z')
/** When the events were received. */
const evening = noon + 12 * 3_600_000

let store: TemporaryStore
beforeEach(async () => {
  store = await temporaryStore()
})
afterEach(() => store.remove())

async function addToken(): Promise<string> {
  const id = newId()
  await store.ledger.write([
    {
      sql: `insert into tokens (id, name, token_prefix, purpose, principal_type, key_class, roles, policy_ids,
              access_policy_ids, metadata_trust, metadata, owner_kind, owner_id, created_at, version)
            values (?, 'x', 'gth', 'general', 'api_token', 'durable', '[]', '[]', '[]', 'none', '{}', 'team', 't', 1, 1)`,
      args: [id],
    },
  ])
  return id
}

/** Events of a token as a gateway ships them, a millisecond apart. */
const events = (token: string, { from, count, type = 'gateway.request.outcome' }: Shipped) =>
  Array.from({ length: count }, (_, index) =>
    testEvent({
      event_type: type,
      timestamp: new Date(from + index).toISOString(),
      event_attribution: { ...noAttribution, token_id: token },
    }),
  )
interface Shipped {
  from: number
  count: number
  type?: Event['event_type']
}

async function lastUsed(id: string): Promise<number | null> {
  const [row] = await store.ledger.read<{ at: number | null }>('select last_used_at as at from tokens where id = ?', [
    id,
  ])
  return row?.at ?? null
}

test('the next flush writes what gateways shipped, in any amount', async () => {
  const lastUse = createLastUse(store.ledger)
  const [busy, late] = [await addToken(), await addToken()]
  lastUse.ingested(events(busy, { from: noon, count: 23_000 }), evening)
  lastUse.ingested(events(late, { from: noon + 61_000, count: 1 }), evening)
  expect(await lastUsed(busy)).toBeNull()
  await lastUse.flush()
  expect(await lastUsed(busy)).toBe(noon)
  expect(await lastUsed(late)).toBe(noon + 60_000)
})

test('counts only outcomes and uses on the control plane, to the minute and never backwards', async () => {
  const lastUse = createLastUse(store.ledger)
  const id = await addToken()
  lastUse.ingested(events(id, { from: noon, count: 1, type: 'decision' }), evening)
  await lastUse.flush()
  expect(await lastUsed(id)).toBeNull()
  lastUse.used(id, noon + 70_000)
  lastUse.ingested(events(id, { from: noon, count: 1 }), evening)
  await lastUse.flush()
  expect(await lastUsed(id)).toBe(noon + 60_000)
  lastUse.ingested(events(id, { from: noon, count: 1 }), evening)
  await lastUse.flush()
  expect(await lastUsed(id)).toBe(noon + 60_000)
})

test('a gateway whose clock is ahead uses a token no later than its event was received', async () => {
  const lastUse = createLastUse(store.ledger)
  const id = await addToken()
  lastUse.ingested(events(id, { from: noon + 600_000, count: 1 }), noon)
  await lastUse.flush()
  expect(await lastUsed(id)).toBe(noon)
})

test('the next flush writes a use that could not be written', async () => {
  let failing = true
  const id = await addToken()
  const lastUse = createLastUse({
    ...store.ledger,
    write: async (statements) => {
      if (failing) throw new Error('The ledger is away')
      await store.ledger.write(statements)
    },
    read: (sql, args) => store.ledger.read(sql, args),
  })
  lastUse.used(id, noon)
  await expect(lastUse.flush()).rejects.toThrow('away')
  failing = false
  await lastUse.flush()
  expect(await lastUsed(id)).toBe(noon)
})

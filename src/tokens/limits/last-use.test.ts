import { afterEach, beforeEach, expect, test } from 'bun:test'
import { newId } from '../../lib/ids.ts'
import { type TemporaryStore, temporaryStore } from '../../store/testing/store.ts'
import { createLastUse } from './last-use.ts'

const noon = Date.parse('2026-05-01T12:00:00Z')

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

/** As many events as a busy gateway ships, of one token, a millisecond apart. */
const addEvents = (token: string, { from, count, type }: { from: number; count: number; type: string }) =>
  store.ledger.write([
    {
      sql: `with recursive number(n) as (select 1 union all select n + 1 from number where n < ?1)
        insert into events (event_id, chain, seq, digest, body, event_type, timestamp, verdict, reason_code, token_id,
          received_at)
        select hex(randomblob(16)), ?2, n, '', '{}', ?3, ?4 + n, 'allow', '', ?5, ?4 from number`,
      args: [count, newId(), type, from, token],
    },
  ])

async function lastUsed(id: string): Promise<number | null> {
  const [row] = await store.ledger.read<{ at: number | null }>('select last_used_at as at from tokens where id = ?', [
    id,
  ])
  return row?.at ?? null
}

const outcome = 'gateway.request.outcome'

test('knows after the second flush what gateways shipped between two flushes, in any amount', async () => {
  const lastUse = createLastUse(store.ledger)
  const [busy, late] = [await addToken(), await addToken()]
  await lastUse.flush()
  await addEvents(busy, { from: noon, count: 23_000, type: outcome })
  await addEvents(late, { from: noon + 61_000, count: 1, type: outcome })
  await lastUse.flush()
  expect(await lastUsed(busy)).toBe(noon)
  expect(await lastUsed(late)).toBe(noon + 60_000)
})

test('a start reads one slice at once and soon the rest of what an earlier process left', async () => {
  const [old, young] = [await addToken(), await addToken()]
  await addEvents(old, { from: noon, count: 1, type: outcome })
  await addEvents(young, { from: noon, count: 9000, type: outcome })
  const lastUse = createLastUse(store.ledger)
  await lastUse.flush()
  expect(await lastUsed(old)).toBe(noon)
  await addEvents(young, { from: noon + 120_000, count: 1, type: outcome })
  await lastUse.flush()
  expect(await lastUsed(young)).toBe(noon + 120_000)
})

test('counts only outcomes and uses on the control plane, to the minute and never backwards', async () => {
  const lastUse = createLastUse(store.ledger)
  const id = await addToken()
  await addEvents(id, { from: noon, count: 1, type: 'token.updated' })
  await lastUse.flush()
  expect(await lastUsed(id)).toBeNull()
  lastUse.used(id, noon + 70_000)
  await lastUse.flush()
  expect(await lastUsed(id)).toBe(noon + 60_000)
  await addEvents(id, { from: noon, count: 1, type: outcome })
  await lastUse.flush()
  expect(await lastUsed(id)).toBe(noon + 60_000)
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

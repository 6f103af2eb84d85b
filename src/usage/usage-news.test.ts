/** Whose events the news of limits are. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { type Event, eventSchema } from '../events/event.ts'
import { systemClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { migrateLedger, migrateState } from '../store/migrate.ts'
import { type Database, openDatabase } from '../store/open.ts'
import { temporaryDirectory } from '../store/test-store.ts'
import { settlementStatements } from './settlement.ts'
import { UsageNews } from './usage-news.ts'

const account = 'token/t/requests'
const lane = 'gateway/instance/0'
let directory: string
let state: Database
let ledger: Database
let news: UsageNews
let events: Event[]

beforeEach(async () => {
  directory = temporaryDirectory()
  state = await openDatabase(`${directory}/state.db`, directory)
  ledger = await openDatabase(`${directory}/ledger.db`, directory)
  await migrateState(state)
  await migrateLedger(ledger)
  const columns = `id, purpose, principal_type, key_class, roles, policy_ids, access_policy_ids, metadata_trust,
    owner_kind, owner_id, version`
  const values = "'t', 'general', 'api_token', 'disposable', '[]', '[]', '[]', 'none', 'user', 'u', 1"
  await state.write([
    {
      sql: `insert into tokens (${columns}, hash, user_id, event_team_id, account_ids)
        values (${values}, 'h', 'u', 'team of u', '[]')`,
      args: [],
    },
  ])
  await ledger.write([
    {
      sql: `insert into tokens (${columns}, name, token_prefix, metadata, created_at, account_id, max_requests, user_id)
        values (${values}, 'n', 'p', '{}', 0, 't', 2, 'u')`,
      args: [],
    },
    { sql: 'insert into usage_cells (account, lane, granted) values (?, ?, 1)', args: [account, lane] },
  ])
  events = []
  news = new UsageNews({
    ...{ state, ledger, clock: systemClock, newId },
    recorder: () => ({
      async change({ event, ledger: statements }) {
        await ledger.write(statements)
        events.push(eventSchema.parse(event))
        return { head: { version: 1, nonce: '', history: '' } }
      },
      append: async () => undefined,
      settle: async () => undefined,
    }),
  })
})
afterEach(() => {
  state.close()
  ledger.close()
  rmSync(directory, { recursive: true, force: true })
})

test('a limit that is used up, and one that was passed, are told as events of the token, caused by no call', async () => {
  await ledger.write(settlementStatements({ lane, settlements: [{ account, amount: 3 }], now: 5 }))
  await news.used([account])
  const { event_attribution: attribution } = events[0] ?? {}
  expect(attribution).toMatchObject({ token_id: 't', team_id: 'team of u', user_id: 'u', key_class: 'disposable' })
  expect(events).toMatchObject([
    { event_type: 'token.exhausted', request_id: null, details: { used: 3, allowed: 2 } },
    { event_type: 'usage.bound_violated', request_id: null, event_attribution: attribution, details: { amount: 2 } },
  ])
})

test('what a lane lost is told as an event of its gateway', async () => {
  await news.lost(lane, [{ account, amount: 1 }])
  expect(events).toMatchObject([
    { event_type: 'usage.lease_lost', request_id: null, event_attribution: { gateway_id: 'gateway' } },
  ])
})

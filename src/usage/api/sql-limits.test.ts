import { expect, test } from 'bun:test'
import { temporaryStore } from '../../store/testing/store.ts'
import { changedAt } from './sql-limits.ts'

const token = (id: string, revokedAt: number | null) => ({
  sql: `insert into tokens (id, hash, purpose, principal_type, key_class, roles, policy_ids, access_policy_ids,
      metadata_trust, owner_kind, owner_id, account_ids, version, revoked_at)
    values (?1, ?1, 'general', 'api_token', 'durable', '[]', '[]', '[]', 'none', 'team', 't', json_array(?1), 7, ?2)`,
  args: [id, revokedAt],
})

test('reads from a change which limits it touched, and none for a token that ended', async () => {
  const { state, remove } = await temporaryStore()
  try {
    await state.write([
      { sql: "insert into accounts (id, max_requests, version) values ('a', 1, 7), ('old', 1, 6)", args: [] },
      {
        sql: "insert into budgets (id, max_budget, window, scope_kind, version) values ('b', 1, 'day', 'x', 7)",
        args: [],
      },
      token('narrowed', null),
      token('revoked', 5),
    ])
    expect(await changedAt(state, 7)).toEqual({
      limits: ['token/a/requests', 'token/a/money', 'budget/b'],
      narrowed: ['token/narrowed/money'],
      offer: false,
    })
    await state.write([
      { sql: "insert into models (id, provider_id, created_at, version) values ('m', 'p', 1, 8)", args: [] },
    ])
    expect(await changedAt(state, 8)).toEqual({ limits: [], narrowed: [], offer: true })
    await state.write([
      {
        sql: "insert into budgets (id, max_budget, window, scope_kind, per, version) values ('each', 1, 'day', 'x', 'customer', 8)",
        args: [],
      },
      {
        sql: `insert into attribution_dimensions (id, name, source_kind, source_key, max_values, required, version)
          values ('d', 'customer', 'header', 'x-customer-id', 5, 0, 9)`,
        args: [],
      },
    ])
    expect((await changedAt(state, 9)).limits).toEqual(['budget/each'])
  } finally {
    remove()
  }
})

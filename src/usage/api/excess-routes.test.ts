/** What an operator sees and forgets of charges beyond list prices. */
import { expect, test } from 'bun:test'
import { temporaryInstallation } from '../../members/testing/installation.ts'
import { temporaryApi } from '../../tokens/testing/api.ts'
import { excessRoutes } from './excess-routes.ts'

test('lists charges above list prices and deletes an excess from the ledger and the state', async () => {
  const made = await temporaryInstallation()
  try {
    const call = temporaryApi(made, [excessRoutes(made.deps)])
    await made.store.ledger.write([
      { sql: "insert into price_excesses values ('p', 'vendor/m', 2500000000, 2500000000, 't', 1)", args: [] },
    ])
    await made.store.state.write([
      { sql: "insert into excesses values ('p/vendor/m', 'p', 'vendor/m', 2500000000, 1, 0)", args: [] },
    ])
    await made.store.state.write([
      {
        sql: "insert into providers (id, name, kind, position, version) values ('p', 'acme', 'openai', 1, 1)",
        args: [],
      },
    ])
    const of = { provider_id: 'p', provider: 'acme', model: 'vendor/m' }
    const known = { ...of, excess: 2.5, token_id: 't', at: '1970-01-01T00:00:00.001Z' }
    expect((await call('GET', '/v1/usage/excesses')).json).toEqual({ excesses: [known], next_cursor: null })
    const body = { provider_id: 'p', model: 'vendor/m' }
    expect((await call('POST', '/v1/usage/forget-excess', { body })).json).toEqual(known)
    expect((await call('POST', '/v1/usage/forget-excess', { body })).status).toBe(404)
    expect((await call('GET', '/v1/usage/excesses')).json).toEqual({ excesses: [], next_cursor: null })
    const [row] = await made.store.state.read('select deleted, version > 1 as published from excesses')
    expect(row).toEqual({ deleted: 1, published: 1 })
  } finally {
    made.store.remove()
  }
})

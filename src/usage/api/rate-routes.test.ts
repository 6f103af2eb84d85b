import { afterEach, beforeEach, expect, test } from 'bun:test'
import { type TemporaryInstallation, temporaryInstallation } from '../../members/testing/installation.ts'
import { temporaryApi } from '../../tokens/testing/api.ts'
import { rateRoutes } from './rate-routes.ts'

let made: TemporaryInstallation
let call: ReturnType<typeof temporaryApi>

beforeEach(async () => {
  made = await temporaryInstallation()
  call = temporaryApi(made, [rateRoutes({ ledger: made.store.ledger, clock: made.clock })])
})
afterEach(() => made.store.remove())

const account = 'token/t/requests'
const second = 1000

/** A row as the ledger keeps it, seen from now. */
function hold(worker: string, kind: string, slots: number, { heard = 0, free = 60 * second, of = account } = {}) {
  const now = made.clock.now()
  return made.store.ledger.write([
    {
      sql: `insert into rate_holdings (account, worker, holder, kind, granted, returned, heartbeat_at, free_at, process, run)
        values (?, ?, ?, ?, ?, 0, ?, ?, 'p', 1)`,
      args: [of, worker, worker, kind, slots, now - heard, now + free],
    },
  ])
}

test('shows slots held by gateways, cooling slots and slots of unreachable gateways separately', async () => {
  await hold('here', 'held', 5)
  await hold('here#1', 'resting', 3)
  await hold('silent', 'held', 90, { heard: 40 * second, free: 51 * second })
  await hold('crashed#2', 'lost', 2, { free: 20 * second })
  await hold('gone', 'held', 1000, { heard: 100 * second, free: -second })
  const until = new Date(made.clock.now() + 51 * second).toISOString()
  expect((await call('GET', '/v1/usage/rates')).json).toEqual({
    rates: [{ account, held: 5, resting: 3, absent: 92, absent_until: until }],
    next_cursor: null,
  })
})

test('lists limits in pages, filtered by prefix or by unreachable gateways', async () => {
  await hold('here', 'held', 5)
  await hold('here', 'held', 5, { of: 'group/g/tokens' })
  await hold('silent', 'held', 7, { of: 'token/u/requests', heard: 40 * second })
  const names = (json: { rates: { account: string }[] }) => json.rates.map((rate) => rate.account)
  const first = (await call('GET', '/v1/usage/rates?limit=2')).json
  expect(names(first)).toEqual(['group/g/tokens', account])
  expect(names((await call('GET', `/v1/usage/rates?limit=2&cursor=${first.next_cursor}`)).json)).toEqual([
    'token/u/requests',
  ])
  expect(names((await call('GET', '/v1/usage/rates?prefix=group/')).json)).toEqual(['group/g/tokens'])
  expect(names((await call('GET', '/v1/usage/rates?absent=true')).json)).toEqual(['token/u/requests'])
})

test('a token that is bound to a team does not see the slots of all gateways', async () => {
  const { teamId } = made
  const body = { name: 'auditor', purpose: 'general', roles: ['auditor'], bindings: { team_id: teamId } }
  const bound = (await call('POST', '/v1/tokens', { body })).json.token_value
  expect((await call('GET', '/v1/usage/rates', { secret: bound })).json.error).toMatchObject({
    code: 'permission_denied',
  })
})

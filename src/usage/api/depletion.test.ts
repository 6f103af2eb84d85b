/**
 * Tokens that share accounts: what is shown, validated, filtered and alerted of them, against a model of the accounts.
 */
import { Database as StateReader } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { compileToken, tokenColumns } from '../../fleet/state/token-row.ts'
import { type TemporaryInstallation, temporaryInstallation } from '../../members/testing/installation.ts'
import { condition } from '../../store/query.ts'
import { statusCondition } from '../../tokens/limits/status-condition.ts'
import { temporaryLimitApi } from '../testing/limit-api.ts'
import { depletionView } from './depletion.ts'

interface Made {
  id: string
  secret: string
  /** Its own account first. */
  accounts: string[]
  rotated: boolean
}
interface Limits {
  rateLimitRpm: number
  settled: { requests: number; money: number }
}

/** An installation whose tokens' accounts are also kept by the model. */
async function modelled() {
  const made = await temporaryInstallation()
  Object.assign(made.deps, { depletion: depletionView(made.store.ledger, async () => {}) })
  const call = temporaryLimitApi(made)
  const tokens: Made[] = []
  const accounts = new Map<string, Limits>()
  const add = ({ id, token_value: secret }: { id: string; token_value: string }, drawn?: string[]) =>
    tokens.push({ id, secret, accounts: drawn ?? [id], rotated: false })
  return {
    ...{ made, call, tokens, accounts },
    async create(rate: number) {
      const limits = { max_requests: 10, max_budget: 1, rate_limit_rpm: rate }
      const { json } = await call('POST', '/v1/tokens', { name: 'a', purpose: 'general', ...limits })
      add(json)
      accounts.set(json.id, { rateLimitRpm: rate, settled: { requests: 0, money: 0 } })
    },
    async clone(source: Made, rate: number) {
      const { json } = await call('POST', `/v1/tokens/${source.id}/clone`, { rate_limit_rpm: rate })
      add(json, [json.id, ...source.accounts])
      accounts.set(json.id, { rateLimitRpm: rate, settled: { requests: 0, money: 0 } })
    },
    async rotate(old: Made) {
      const { json } = await call('POST', `/v1/tokens/${old.id}/rotate`, {})
      add(json, old.accounts)
      old.rotated = true
    },
    async narrow(token: Made, rate: number) {
      await call('PATCH', `/v1/tokens/${token.id}`, { rate_limit_rpm: rate })
      const limits = accounts.get(token.accounts[0] ?? '')
      if (limits !== undefined) limits.rateLimitRpm = rate
    },
    async use(token: Made, kind: 'requests' | 'money', share: number) {
      const owner = token.accounts[0] ?? ''
      const limits = accounts.get(owner)
      if (limits === undefined || limits.settled[kind] >= share) return
      limits.settled[kind] = share
      const settled = share * (kind === 'money' ? 1e9 : 10)
      await made.store.ledger.write([
        {
          sql: `insert into usage_accounts (account, owner_id, kind, settled, exhausted_at) values (?, ?, ?, ?, ?)
            on conflict (account) do update set settled = excluded.settled, exhausted_at = excluded.exhausted_at`,
          args: [`token/${owner}/${kind}`, owner, kind, settled, share === 1 ? 1 : null],
        },
      ])
    },
  }
}
type Modelled = Awaited<ReturnType<typeof modelled>>

const shareOf = ({ accounts }: Modelled, token: Made, kind: 'requests' | 'money') =>
  Math.max(...token.accounts.map((id) => accounts.get(id)?.settled[kind] ?? 0))

function statusOf(model: Modelled, token: Made) {
  if (token.rotated) return 'rotated'
  if (shareOf(model, token, 'money') === 1) return 'budget_exhausted'
  return shareOf(model, token, 'requests') === 1 ? 'request_exhausted' : 'active'
}

function alertsOf(model: Modelled, token: Made): string[] {
  const status = statusOf(model, token)
  if (status !== 'active') return status === 'rotated' ? [] : [status]
  const near = (kind: 'requests' | 'money') => shareOf(model, token, kind) >= 0.8
  return [
    ...(near('money') ? ['budget_near_exhaustion'] : []),
    ...(near('requests') ? ['request_near_exhaustion'] : []),
  ]
}

async function expectShown(model: Modelled): Promise<void> {
  const { call, tokens } = model
  const idsWhere = (holds: (token: Made) => boolean) =>
    tokens
      .filter(holds)
      .map(({ id }) => id)
      .toSorted()
  for (const token of tokens) {
    const status = statusOf(model, token)
    expect((await call('GET', `/v1/tokens/${token.id}`)).json.status).toBe(status)
    const { json } = await call('POST', '/v1/tokens/validate', { token: token.secret })
    expect(json).toEqual(status === 'active' ? { valid: true, token_id: token.id } : { valid: false, reason: status })
  }
  const { json: views } = await call('GET', '/v1/tokens/views')
  for (const status of ['active', 'budget_exhausted', 'request_exhausted']) {
    const { json } = await call('GET', `/v1/tokens?status=${status}&purpose=general`)
    const listed: string[] = json.tokens.map(({ id }: { id: string }) => id)
    const ours = listed.filter((id) => tokens.some((token) => token.id === id)).toSorted()
    const expected = idsWhere((token) => statusOf(model, token) === status)
    expect(ours).toEqual(expected)
    if (status !== 'active') expect(views.by_status[status] ?? 0).toBe(expected.length)
  }
  const { json } = await call('GET', '/v1/tokens/alerts')
  const told = json.alerts.map(
    (alert: { token_id: string; condition: string }) => `${alert.token_id} ${alert.condition}`,
  )
  const expected = tokens.flatMap((token) => alertsOf(model, token).map((condition) => `${token.id} ${condition}`))
  expect(told.toSorted()).toEqual(expected.toSorted())
}

/** What gateways decide by: the accounts of each token, with the rates of each. */
async function expectGoverned({ made, tokens, accounts }: Modelled): Promise<void> {
  using state = new StateReader(`${made.store.directory}/state.db`, { readonly: true })
  for (const { id, accounts: drawn } of tokens) {
    const governed = compileToken(state.query(`select ${tokenColumns} from tokens where id = ?`).get(id))
    const rates = drawn.map((account) => ({ id: account, rateLimitRpm: accounts.get(account)?.rateLimitRpm ?? null }))
    expect(governed.accounts.map(({ id: account, rateLimitRpm }) => ({ id: account, rateLimitRpm }))).toEqual(rates)
  }
}

const act = fc.record({
  kind: fc.constantFrom('create', 'clone', 'clone', 'rotate', 'narrow', 'use', 'use'),
  which: fc.nat(),
  unit: fc.constantFrom('requests' as const, 'money' as const),
  share: fc.constantFrom(0.5, 0.8, 1),
})

test('shows a token as usable exactly while all accounts it draws on are usable, after any clones and rotations', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(act, { minLength: 3, maxLength: 14 }), async (acts) => {
      const model = await modelled()
      let rate = 1000
      await model.create(rate)
      for (const { kind, which, unit, share } of acts) {
        const usable = model.tokens.filter(({ rotated }) => !rotated)
        const token = usable[which % usable.length]
        // Each rate is lower than all before it, so that nothing is wider than what it is made from.
        rate -= 1
        // What is used up is neither cloned nor rotated.
        const isCopy = kind === 'clone' || kind === 'rotate'
        if (isCopy && token !== undefined && statusOf(model, token) !== 'active') continue
        if (kind === 'create' || token === undefined) await model.create(rate)
        else if (kind === 'clone') await model.clone(token, rate)
        else if (kind === 'rotate') await model.rotate(token)
        else if (kind === 'narrow') await model.narrow(token, rate)
        else await model.use(token, unit, share)
      }
      await expectShown(model)
      await expectGoverned(model)
      model.made.store.remove()
    }),
    { numRuns: 12 },
  )
}, 60_000)

const planOf = async ({ store }: TemporaryInstallation, status: 'budget_exhausted' | 'request_exhausted') => {
  const view = depletionView(store.ledger, async () => {})
  const { sql, args } = condition(statusCondition(status, 1, view))
  const rows = await store.ledger.read<{ detail: string }>(
    `explain query plan select * from tokens where ${sql} order by id desc limit 101`,
    args,
  )
  return rows.map(({ detail }) => detail)
}

test('filters by exhausted tokens by walking the exhausted accounts only', async () => {
  const made = await temporaryInstallation()
  for (const status of ['budget_exhausted', 'request_exhausted'] as const) {
    const plan = await planOf(made, status)
    expect(plan.filter((detail) => detail.startsWith('SCAN'))).toEqual([])
    expect(plan).toContain('SEARCH tokens USING INDEX sqlite_autoindex_tokens_1 (id=?)')
    expect(plan.join()).toContain('usage_accounts_exhausted')
  }
  made.store.remove()
})

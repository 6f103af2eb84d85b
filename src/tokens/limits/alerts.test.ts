import { afterEach, beforeEach, expect, test } from 'bun:test'
import { settingsSchema } from '../../config.ts'
import { type TemporaryInstallation, temporaryInstallation } from '../../members/testing/installation.ts'
import { createToken } from '../changes/create.ts'
import { createTokenBody } from '../token-body.ts'
import { alertThresholds, listAlerts, listAlertsQuery } from './alerts.ts'
import { type DepletionView, type TokenDepletion, uncounted } from './depletion.ts'

let made: TemporaryInstallation
beforeEach(async () => {
  made = await temporaryInstallation()
})
afterEach(() => made.store.remove())

const day = 24 * 3600

const alertsOf = async (used: ReadonlyMap<string, TokenDepletion>, settings: object = {}) => {
  const list = [...used.keys()].map((id) => `'${id}'`).join()
  const depletion: DepletionView = {
    ...uncounted,
    read: async () => used,
    exhausted: () => 'false',
    nearExhaustion: () => `id in (${list})`,
  }
  const deps = { ...made.deps, depletion, alerts: alertThresholds(settingsSchema.parse(settings)) }
  const { alerts } = await listAlerts(deps, made.owner, listAlertsQuery.parse({}), made.installation.adminToken ?? '')
  return alerts.map(({ name, condition }) => `${name} ${condition}`)
}

const make = async (name: string, fields: object) => {
  const body = createTokenBody.parse({ name, purpose: 'general', ...fields })
  return (await createToken(made.deps, { principal: made.owner, requestId: 'r' }, body)).token.id
}

test('alerts name limits that are nearly or fully used up, by the configured share', async () => {
  const used = (spend: number, requests: number, status: TokenDepletion['status'] = null): TokenDepletion => ({
    depletion: { current_spend: spend, remaining_budget: null, current_requests: requests, remaining_requests: null },
    shares: { budget: spend / 10, requests: requests / 100 },
    status,
    exceededAt: null,
  })
  const both = { max_budget: 10, max_requests: 100 }
  const depletions = new Map([
    [await make('fresh', both), used(7.99, 79)],
    [await make('spent', both), used(8, 0)],
    [await make('asked', both), used(0, 80)],
    [await make('empty', both), used(10, 90, 'budget_exhausted')],
    [await make('asked out', both), used(0, 100, 'request_exhausted')],
    [await make('unlimited', {}), { ...used(1000, 1000), shares: { budget: 0, requests: 0 } }],
  ])
  expect(await alertsOf(depletions)).toEqual([
    'asked out request_exhausted',
    'empty budget_exhausted',
    'asked request_near_exhaustion',
    'spent budget_near_exhaustion',
  ])
  expect(await alertsOf(depletions, { alert_near_exhaustion_percent: 100 })).toEqual([
    'asked out request_exhausted',
    'empty budget_exhausted',
  ])
})

test('the windows of expiry and rotation alerts are settings', async () => {
  await make('short', { expires_in_seconds: 10 * day })
  expect(await alertsOf(new Map())).toEqual([])
  expect(await alertsOf(new Map(), { alert_expiring_days: 10 })).toEqual(['short expiring'])
  made.clock.advance(2 * day * 1000)
  const due = await alertsOf(new Map(), { alert_expiring_days: 1, alert_rotation_due_days: 2 })
  expect(due).toContain('short rotation_due')
  for (const settings of [{ alert_near_exhaustion_percent: 0 }, { alert_near_exhaustion_percent: 101 }]) {
    expect(() => settingsSchema.parse(settings)).toThrow()
  }
})

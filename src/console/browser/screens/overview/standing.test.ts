import { expect, test } from 'bun:test'
import type { Budget, Firing, Recent } from '../../api/routes.ts'
import type { Read } from './standing.ts'

// A browser has them.
Object.defineProperty(navigator, 'languages', { value: ['en'], configurable: true })
const { causesOf, standingOf } = await import('./standing.ts')

const now = Date.parse('2026-11-23T12:00:00Z')
const nothing: Read = {
  findings: [],
  firings: [],
  budgets: [],
  tokenAlerts: [],
  hasMoreTokenAlerts: false,
  workers: [],
  failedTests: [],
  servers: [],
  recent: null,
}
const owner = { wordsOf: (reason: string) => `of ${reason}`, now, mayChange: true }
const told = (read: Partial<Read>) => {
  const causes = causesOf({ ...nothing, ...read }, owner)
  return { standing: standingOf(causes), what: causes.map(({ what }) => what).join('\n') }
}

const budget = (spent: number, forecast: number | null = null): Budget => ({
  ...{ id: 'b', name: 'growth', currency: 'USD', max_budget: 100, current_spend: spent, remaining: 100 - spent },
  ...{
    window: 'month',
    resets_at: null,
    forecast,
    scope: { kind: 'organization', id: null, tool: null },
    per: null,
    values: null,
  },
  ...{ version: 1, created_at: '2026-11-01T00:00:00.000Z' },
})

/** Each outcome as verdict, reason and requests. */
const recent = (...outcomes: readonly [string, string, number][]): { recent: Recent } => ({
  recent: {
    minutes: 10,
    outcomes: outcomes.map(([verdict, reason_code, requests]) => ({ verdict, reason_code, requests })),
    failing: [],
  },
})

const worker = {
  worker: 'w',
  gateway_id: 'g',
  gateway_name: 'edge',
  connected: false,
  serves_until: null,
  left_at: null,
}

test('an installation in which nothing is wrong is healthy', () => {
  expect(told({ workers: [{ ...worker, connected: true }], budgets: [budget(10, 50)] })).toEqual({
    standing: 'healthy',
    what: '',
  })
})

test('a budget that is used up is refusing, one that will not last is a notice', () => {
  expect(told({ budgets: [budget(100)] })).toMatchObject({ standing: 'refusing' })
  expect(told({ budgets: [budget(10, 130)] })).toEqual({
    standing: 'healthy',
    what: 'The budget growth will not last: $130.00 by the end of the month, of $100.00',
  })
})

test('a budget for each value is a notice where values used it up, and never by what all of them spent', () => {
  const each = (spent: number, exhausted: number, nearly_exhausted: number): Budget => ({
    ...budget(spent, 10 * spent),
    per: 'customer',
    values: { count: 40, exhausted, nearly_exhausted, most_spent: 100 },
  })
  expect(told({ budgets: [each(4000, 0, 0)] })).toEqual({ standing: 'healthy', what: '' })
  expect(told({ budgets: [each(4000, 3, 5)] })).toEqual({
    standing: 'healthy',
    what: 'The budget growth is used up for 3 of 40 values of customer',
  })
  expect(told({ budgets: [each(4000, 0, 5)] }).what).toContain('nearly used up for 5 of 40')
})

test('a gateway out of reach is refusing unless another of its processes is connected', () => {
  expect(told({ workers: [worker] }).standing).toBe('refusing')
  expect(told({ workers: [worker, { ...worker, worker: 'w2', connected: true }] }).standing).toBe('healthy')
  const serves = { ...worker, serves_until: '2026-11-23T12:01:00.000Z' }
  expect(told({ workers: [serves] }).standing).toBe('degraded')
})

test('half of the recent requests refused or failed is refusing, with the most frequent reason of each', () => {
  const refused = told(recent(['allow', 'ok', 5], ['deny', 'spent', 4], ['error', 'down', 2]))
  expect(refused.standing).toBe('degraded')
  expect(refused.what).toContain('(2 of 11) failed, most of them because of down')
  const outage = told(recent(['allow', 'ok', 1], ['deny', 'spent', 3], ['block', 'spent', 2], ['error', 'down', 1]))
  expect(outage.standing).toBe('refusing')
  expect(outage.what).toContain('(5 of 7) were refused, most of them because of spent')
})

test('fewer than five requests say nothing', () => {
  expect(told(recent(['error', 'down', 4])).standing).toBe('healthy')
})

test('names a provider and a model that fail, since when, and leads to their failed requests', () => {
  const since = '2026-11-23T11:40:00.000Z'
  const failing: Recent['failing'] = [
    { kind: 'provider', name: 'openai', requests: 40, failed: 18, since },
    { kind: 'model', name: 'gpt-4o', requests: 20, failed: 18, since },
  ]
  const read = { ...nothing, recent: { minutes: 10, outcomes: [], failing } }
  const causes = causesOf(read, owner)
  expect(standingOf(causes)).toBe('degraded')
  expect(causes).toMatchObject([
    { what: 'The provider openai fails 45 % of its requests (18 of 40)', since },
    {
      what: 'The model gpt-4o fails 90 % of its requests (18 of 20)',
      to: { path: '/traffic', query: { model: 'gpt-4o', verdict: 'error', range: '1h' } },
      since,
    },
  ])
})

test('a provider whose last connection test failed makes an installation degraded', () => {
  const failedTests = [{ provider_id: 'p', name: 'openai', at: '2026-11-23T11:00:00.000Z' }]
  expect(told({ failedTests })).toEqual({
    standing: 'degraded',
    what: 'The last connection test of the provider openai failed, and it has answered no request since',
  })
})

test('offers to raise a budget only to those who may', () => {
  const steps = (mayChange: boolean) =>
    causesOf(
      { ...nothing, budgets: [budget(100)], failedTests: [{ provider_id: 'p', name: 'openai', at: '' }] },
      { ...owner, mayChange },
    ).map(({ todo }) => todo)
  expect(steps(true)).toEqual(['Raise it, or wait', 'Test it again'])
  expect(steps(false)).toEqual(['See who uses it', 'See the provider'])
})

test('says that there are more tokens than those it names', () => {
  expect(told({ hasMoreTokenAlerts: true }).what).toBe('More tokens need attention than are named here')
})

test('what doctor found makes an installation degraded', () => {
  const finding = { check: 'disk', level: 'warn' as const, what: 'The disk is full', todo: 'Free some', since: '' }
  expect(told({ findings: [finding] })).toEqual({ standing: 'degraded', what: 'The disk is full' })
})

test('an MCP server that changed a tool is a cause by name, whose next step is to compare it', () => {
  const server = { id: 's', name: 'tickets', changed: 1, added: 0, names: ['create_ticket'], since: '' }
  const [cause] = causesOf({ ...nothing, servers: [server] }, owner)
  expect(cause).toMatchObject({
    level: 'degraded',
    what: 'The MCP server tickets has changed what it offers, and callers are not shown it: create_ticket',
    to: { path: '/catalog', query: { kind: 'mcp-servers', held: 's' } },
  })
  const added = told({ servers: [{ ...server, changed: 0, added: 7, names: ['a', 'b'] }] })
  expect(added).toEqual({
    standing: 'healthy',
    what: 'The MCP server tickets has added 7 offers, which callers are not shown: a, b and 5 more',
  })
})

const firing = (fields: Partial<Firing>): Firing => ({
  ...{ id: 'f', alert_id: 'a', alert: 'Many refusals', condition: 'refusals', subject: 'organization', value: 53 },
  ...{ threshold: 20, severity: 'warning', about: '53 of 100: 53 tokens.expired', fired_at: '', resolved_at: null },
  ...{ alert_deleted: false, notices: [], ...fields },
})

test('says of an alert which threshold was reached, without the figures and codes of when it fired', () => {
  expect(told({ firings: [firing({})] })).toEqual({
    standing: 'degraded',
    what: 'The alert “Many refusals” has fired: 20 % or more of the requests were refused',
  })
})

test('says once that a budget reached thresholds, by its name and the highest of them', () => {
  const share = { alert: 'Budgets', condition: 'budget_share', subject: 'budget/b@2026-11-01' }
  const firings = [firing({ ...share, threshold: 50 }), firing({ ...share, threshold: 75 })]
  expect(told({ firings, budgets: [budget(76)] }).what).toBe(
    'The alert “Budgets” has fired: the budget growth has reached 75 %',
  )
})

test('says what doctor found of an alert, and the text of an alert that was deleted', () => {
  const found = firing({ alert: 'Doctor', condition: 'doctor_finding', about: 'The disk is full.' })
  expect(told({ firings: [found] }).what).toBe('The alert “Doctor” has fired: The disk is full.')
  const deleted = firing({ alert: null, condition: null, about: 'It was so.' })
  expect(told({ firings: [deleted] }).what).toBe('A deleted alert has fired: It was so.')
})

test('says of one value of a budget, and of a count of further values, what the firing says', () => {
  const share = { alert: 'Budgets', condition: 'budget_share' }
  const one = firing({
    ...share,
    subject: 'budget/b/3f2a@2026-11-01',
    threshold: 50,
    about: '60 % of the customer acme.',
  })
  const more = { ...share, subject: 'budget/b@2026-11-01 more' }
  const counts = [
    firing({ ...more, threshold: 2, about: '2 more values of customer.' }),
    firing({ ...more, threshold: 4, about: '4 more values of customer.' }),
  ]
  expect(told({ firings: [one, ...counts], budgets: [budget(10)] }).what).toBe(
    'The alert “Budgets” has fired: 60 % of the customer acme.\nThe alert “Budgets” has fired: 4 more values of customer.',
  )
})

test('says the lowest number of days of a token that expires, and the highest count of further tokens', () => {
  const expires = { alert: 'Tokens', condition: 'token_expiring' }
  const days = [30, 1, 7].map((threshold) => firing({ ...expires, subject: 't', threshold }))
  expect(told({ firings: days }).what).toBe('The alert “Tokens” has fired: a token expires within 1 day')
  const counts = [2, 4].map((threshold) =>
    firing({ ...expires, subject: 'more', threshold, about: `The same holds for ${threshold} more.` }),
  )
  expect(told({ firings: counts }).what).toBe('The alert “Tokens” has fired: The same holds for 4 more.')
})

test('does not say of the organization what an alert found for a team or a token', () => {
  const about = '25 of 25 requests of the team checkout were refused.'
  const ofTeam = firing({ subject: 'team 0190', about })
  expect(told({ firings: [ofTeam] }).what).toBe(`The alert “Many refusals” has fired: ${about}`)
  const ofToken = firing({
    ...{ alert: 'Budgets', condition: 'budget_share', subject: 'token/0190/money', threshold: 80 },
    about: '85 % of the budget of the token ci are used.',
  })
  expect(told({ firings: [ofToken] }).what).toBe(
    'The alert “Budgets” has fired: 85 % of the budget of the token ci are used.',
  )
})

import { describe, expect, test } from 'bun:test'
import { usageFailure } from './demands.ts'
import { type Budget, type LimitSet, noLimits } from './limits.ts'
import { rateFailure } from './rate/rate-demands.ts'
import { RateRefused } from './rate/rates.ts'
import { type RefusalCause, UsageRefused } from './usage-limits.ts'

const now = Date.parse('2026-11-23T12:00:00Z')
const dollar = 1_000_000_000
const account = { id: 't', maxRequests: 40, maxBudget: 5 * dollar, rateLimitRpm: null, rateLimitTpm: null }
const growth: Budget = {
  id: 'b',
  name: 'growth',
  maxBudget: 500 * dollar,
  window: 'month',
  scope: { kind: 'team', id: 'blue' },
  per: null,
}
const limits: LimitSet = {
  ...noLimits,
  budgets: new Map([['b', growth]]),
  groupsOf: new Map([
    ['team:blue', [{ id: 'g', name: 'analysts', requestsPerMinute: 60, tokensPerMinute: null, per: null }]],
  ]),
  accessPolicies: new Map([
    [
      'p',
      {
        id: 'p',
        name: 'small models',
        requestsPerMinute: null,
        tokensPerMinute: 900,
        scope: 'token',
        models: null,
        providers: null,
        per: null,
      },
    ],
  ]),
}

const refusal = (name: string, reason: RefusalCause, left: number | null, detail?: string) =>
  usageFailure(new UsageRefused(name, reason, { left }), {
    ...{ keyClass: 'durable', resource: 'token/t', accounts: [account], limits, now, detail },
  })

describe('the error of a refused reservation names the limit', () => {
  test('a budget by its name, with what is left, its amount and when it starts again', () => {
    const { message, limit } = refusal('budget/b', 'short', 0.12 * dollar)
    expect(message).toBe(
      'The budget "growth" of the team cannot pay for this request: $499.88 of $500 is used, and it resets at 2026-12-01T00:00:00.000Z. The token is token/t',
    )
    expect(limit).toEqual({
      ...{ kind: 'budget', id: 'b', name: 'growth', unit: 'usd', limit: 500, left: 0.12 },
      scope: { kind: 'team', id: 'blue' },
      resets_at: '2026-12-01T00:00:00.000Z',
    })
  })

  test('a budget without a window, which never starts again', () => {
    const total = { ...limits, budgets: new Map([['b', { ...growth, window: 'total' as const }]]) }
    const { message } = usageFailure(new UsageRefused('budget/b', 'exhausted', { left: 0 }), {
      ...{ keyClass: 'durable', resource: 'token/t', accounts: [], limits: total, now },
    })
    expect(message).toBe('The budget "growth" of the team is used up: $500 of $500 is used. The token is token/t')
  })

  test('a budget that this gateway does not know yet by its id', () => {
    expect(refusal('budget/new', 'held', null).message).toBe(
      'What is left of the budget new is held by running requests: retry shortly. The token is token/t',
    )
  })

  test("a token's own budget and requests", () => {
    expect(refusal('token/t/money', 'short', dollar).message).toContain(
      'The budget of the token (max_budget) cannot pay for this request: $4 of $5 is used. The limit is of token/t',
    )
    expect(refusal('token/t/requests', 'exhausted', 0).message).toBe(
      'The requests of the token (max_requests) are used up: token/t',
    )
  })

  test('how many requests are missing for a batch', () => {
    expect(refusal('token/t/requests', 'short', 7, 'the 30 lines of the batch are one request each').message).toBe(
      'Too few requests of the token (max_requests) are left: 7 of 40, and the 30 lines of the batch are one request each. The limit is of token/t',
    )
  })
})

describe('the error of a refused rate names the limit', () => {
  const refused = (name: string) =>
    rateFailure(new RateRefused(name, { reason: 'used', retryAfter: 3, absent: 0 }), limits, 'token/t')

  test('a consumer group', () => {
    const { message, limit } = refused('group/g/requests')
    expect(message).toBe(
      'The consumer group "analysts" has used its 60 requests of this minute. The token in it is token/t',
    )
    expect(limit).toMatchObject({ kind: 'consumer_group', id: 'g', name: 'analysts', unit: 'requests', limit: 60 })
  })

  test('an access policy, also where each token has its own rate', () => {
    expect(refused('access/p/t/tokens').message).toBe(
      'The token has used its 900 tokens of this minute: the access policy "small models" allows no more. The token is token/t',
    )
  })

  test('the limit of the token', () => {
    expect(refused('token/t/requests')).toMatchObject({
      message: expect.stringContaining('the limit of the token, or of its source, allows no more'),
      limit: { kind: 'rate_limit', name: null },
    })
  })
})

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { globMatches, modelAllowed } from '../governed-token.ts'
import type { TokenScope } from '../scope.ts'
import { globWithin, metadataWidened, widenedField } from './narrowing.ts'

const glob = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 6 })
const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 8 })
const nullable = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: null })
const limit = nullable(fc.integer({ min: 1, max: 4 }))
const reference = nullable(fc.constantFrom('x', 'y'))
const ids = fc.uniqueArray(fc.constantFrom('p', 'q', 'r'))

const scope: fc.Arbitrary<TokenScope> = fc.record({
  gatewayId: reference,
  teamId: reference,
  userId: reference,
  provider: reference,
  modelFilter: nullable(fc.array(glob, { minLength: 1, maxLength: 3 })),
  budgetId: reference,
  roles: fc.uniqueArray(fc.constantFrom('owner', 'admin', 'auditor', 'member'), { minLength: 1 }),
  policyIds: ids,
  accessPolicyIds: ids,
  metadataTrust: fc.constantFrom('none', 'caller'),
  mcpTools: fc.constantFrom('listed', 'searched'),
  maxBudget: limit,
  maxRequests: limit,
  rateLimitRpm: limit,
  rateLimitTpm: limit,
  expiresAt: limit,
})

/** A scope drawn at random is hardly ever narrower than another, so one is made by narrowing some fields. */
const narrowed = (wide: TokenScope): fc.Arbitrary<TokenScope> =>
  fc.tuple(scope, fc.array(fc.boolean(), { minLength: 15, maxLength: 15 })).map(([other, taken]) => {
    const names = Object.keys(wide) as (keyof TokenScope)[]
    let result = wide
    for (const [index, name] of names.entries()) {
      const candidate = { ...result, [name]: other[name] }
      if (taken[index] && widenedField(wide, candidate) === null) result = candidate
    }
    return result
  })

test('every scope is within itself', () => {
  fc.assert(fc.property(scope, (one) => widenedField(one, one) === null))
})

test('scopes are transitive', () => {
  const chain = scope.chain((wide) =>
    narrowed(wide).chain((middle) => narrowed(middle).map((narrow) => ({ wide, middle, narrow }))),
  )
  fc.assert(
    fc.property(chain, ({ wide, middle, narrow }) => {
      expect(widenedField(wide, middle)).toBeNull()
      expect(widenedField(middle, narrow)).toBeNull()
      expect(widenedField(wide, narrow)).toBeNull()
    }),
  )
})

test('random scopes are transitive too', () => {
  fc.assert(
    fc.property(scope, scope, scope, (a, b, c) => {
      if (widenedField(a, b) === null && widenedField(b, c) === null) expect(widenedField(a, c)).toBeNull()
    }),
  )
})

interface Attempt {
  gateway: string
  team: string
  provider: string
  model: string
  spend: number
  requests: number
  at: number
}
const attempt: fc.Arbitrary<Attempt> = fc.record({
  gateway: fc.constantFrom('x', 'y'),
  team: fc.constantFrom('x', 'y'),
  provider: fc.constantFrom('x', 'y'),
  model: text,
  spend: fc.integer({ min: 0, max: 5 }),
  requests: fc.integer({ min: 0, max: 5 }),
  at: fc.integer({ min: 0, max: 5 }),
})

/** What a gateway would say, written down apart from the narrowing rules. */
const allowed = (token: TokenScope, asked: Attempt): boolean =>
  (token.gatewayId ?? asked.gateway) === asked.gateway &&
  (token.teamId ?? asked.team) === asked.team &&
  (token.provider ?? asked.provider) === asked.provider &&
  modelAllowed(token.modelFilter, asked.model) &&
  asked.spend <= (token.maxBudget ?? Number.POSITIVE_INFINITY) &&
  asked.requests <= (token.maxRequests ?? Number.POSITIVE_INFINITY) &&
  asked.at < (token.expiresAt ?? Number.POSITIVE_INFINITY)

test('a narrower token is never allowed what its source is denied', () => {
  const pair = scope.chain((wide) => narrowed(wide).map((narrow) => ({ wide, narrow })))
  fc.assert(
    fc.property(pair, fc.array(attempt, { minLength: 5 }), ({ wide, narrow }, attempts) => {
      for (const asked of attempts) if (allowed(narrow, asked)) expect(allowed(wide, asked)).toBe(true)
    }),
    { numRuns: 1000 },
  )
})

const open: TokenScope = {
  gatewayId: null,
  teamId: null,
  userId: null,
  provider: null,
  modelFilter: null,
  budgetId: null,
  roles: ['member'],
  policyIds: [],
  accessPolicyIds: [],
  metadataTrust: 'caller',
  mcpTools: 'listed',
  maxBudget: null,
  maxRequests: null,
  rateLimitRpm: null,
  rateLimitTpm: null,
  expiresAt: null,
}
const bound: TokenScope = {
  gatewayId: 'g',
  teamId: 't',
  userId: 'u',
  provider: 'p',
  modelFilter: ['m*'],
  budgetId: 'b',
  roles: ['member'],
  policyIds: ['one'],
  accessPolicyIds: ['two'],
  metadataTrust: 'none',
  mcpTools: 'listed',
  maxBudget: 5,
  maxRequests: 5,
  rateLimitRpm: 5,
  rateLimitTpm: 5,
  expiresAt: 5,
}

test('names any limit that is removed or raised', () => {
  expect(widenedField(open, bound)).toBeNull()
  const wider: Partial<TokenScope>[] = [
    { provider: null },
    { modelFilter: null },
    { modelFilter: ['m*', 'n'] },
    { gatewayId: 'other' },
    { policyIds: [] },
    { accessPolicyIds: [] },
    { budgetId: null },
    { maxBudget: 6 },
    { maxRequests: null },
    { rateLimitRpm: 6 },
    { rateLimitTpm: null },
    { expiresAt: 6 },
    { teamId: null },
    { userId: 'other' },
    { metadataTrust: 'caller' },
    { roles: ['admin'] },
  ]
  expect(wider.map((change) => widenedField(bound, { ...bound, ...change }))).toEqual([
    'bindings.provider',
    'bindings.model_filter',
    'bindings.model_filter',
    'bindings.gateway_id',
    'policy_ids',
    'access_policy_ids',
    'bindings.budget_id',
    'max_budget',
    'max_requests',
    'rate_limit_rpm',
    'rate_limit_tpm',
    'expires_at',
    'bindings.team_id',
    'bindings.user_id',
    'metadata_trust',
    'roles',
  ])
  expect(widenedField({ ...bound, roles: ['admin'] }, { ...bound, roles: ['owner'] })).toBe('roles')
})

test('a glob within another matches nothing that the other does not', () => {
  fc.assert(
    fc.property(glob, glob, fc.array(text, { minLength: 5 }), (wide, narrow, texts) => {
      if (!globWithin(wide, narrow)) return
      for (const one of texts) if (globMatches(narrow, one)) expect(globMatches(wide, one)).toBe(true)
    }),
    { numRuns: 2000 },
  )
})

test('a glob that is not within another matches something that the other does not', () => {
  fc.assert(
    fc.property(glob, glob, (wide, narrow) => {
      // `c` stands in neither pattern: the text in which it stands for each `*` tells the two apart.
      const witness = narrow.replaceAll('*', 'c')
      expect(globWithin(wide, narrow)).toBe(globMatches(wide, witness))
    }),
    { numRuns: 2000 },
  )
})

test('metadata may gain keys, but not lose or change one', () => {
  expect(metadataWidened({ a: '1' }, { a: '1', b: '2' })).toBe(false)
  expect(metadataWidened({ a: '1' }, { a: '2' })).toBe(true)
  expect(metadataWidened({ a: '1' }, {})).toBe(true)
  expect(metadataWidened({ toString: 'x' }, {})).toBe(true)
})

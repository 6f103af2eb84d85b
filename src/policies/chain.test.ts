import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { verdicts } from '../events/event.ts'
import { familyNames } from '../languages/families.ts'
import { type ChainSubject, compilePolicySet, matches } from './chain.ts'
import { ModelView } from './conditions/context.ts'
import type { PolicyTargets, StoredPolicy } from './stored-policy.ts'
import { endsChain, stronger } from './verdict.ts'

const policy = (id: string, change: Partial<StoredPolicy> = {}): StoredPolicy => ({
  id,
  kind: 'audit',
  stages: ['pre_request'],
  config: {},
  when: null,
  targets: {},
  position: 1,
  mode: 'enforce',
  whenBroken: 'deny',
  enabled: true,
  version: 1,
  ...change,
})

const subject = (change: Partial<ChainSubject> = {}): ChainSubject => ({
  organizationId: 'o',
  gatewayId: 'g1',
  tokenId: 't1',
  teamId: 'team1',
  policyIds: [],
  model: 'gpt-4o',
  family: 'chat',
  ...change,
})

const idsOf = (policies: readonly StoredPolicy[], of: ChainSubject): string[] =>
  compilePolicySet(policies)
    .chainFor(of)
    .at('pre_request')
    .map(({ id }) => id)

test('applies a policy without targets to every request and narrows by each target list', () => {
  expect(idsOf([policy('a')], subject())).toEqual(['a'])
  const both = policy('a', { targets: { teams: ['team1'], models: ['gpt-*'] } })
  expect(idsOf([both], subject())).toEqual(['a'])
  expect(idsOf([both], subject({ teamId: 'team2' }))).toEqual([])
  expect(idsOf([both], subject({ teamId: null }))).toEqual([])
  expect(idsOf([both], subject({ model: 'claude' }))).toEqual([])
})

test('applies policies for any model to a request that goes to no model, within their other targets', () => {
  const policies = [
    policy('a', { targets: { models: ['gpt-*'] } }),
    policy('b', { targets: { models: ['claude'], teams: ['team1'] } }),
    policy('c', { targets: { models: ['gpt-*'], teams: ['team2'] } }),
  ]
  expect(idsOf(policies, subject({ model: null }))).toEqual(['a', 'b'])
})

test('applies a policy named by a token regardless of team, gateway and token targets, but within models and families', () => {
  const far = policy('a', { targets: { teams: ['other'], gateways: ['other'], tokens: [] } })
  expect(idsOf([far], subject())).toEqual([])
  expect(idsOf([far], subject({ policyIds: ['a'] }))).toEqual(['a'])
  const onlyVectors = policy('a', { targets: { families: ['embeddings'] } })
  expect(idsOf([onlyVectors], subject({ policyIds: ['a'] }))).toEqual([])
  expect(idsOf([policy('b')], subject({ policyIds: ['a'] }))).toEqual(['b'])
})

test('applies a policy for a token to its clones and rotations', () => {
  const own = policy('a', { targets: { tokens: ['source'] } })
  expect(idsOf([own], subject())).toEqual([])
  expect(idsOf([own], subject({ tokenLineage: ['source'] }))).toEqual(['a'])
})

test('orders policies by position and leaves out disabled ones', () => {
  const policies = [policy('c', { position: 3 }), policy('a', { position: 1 }), policy('b', { position: 2 })]
  expect(idsOf([...policies, policy('d', { enabled: false })], subject())).toEqual(['a', 'b', 'c'])
})

test('keeps a policy of an unknown kind in the chain as broken', () => {
  const [broken] = compilePolicySet([policy('a', { kind: 'of-tomorrow' })])
    .chainFor(subject())
    .at('pre_request')
  expect(broken?.compiled).toBeInstanceOf(Error)
})

test('allows a fallback when no policy forbids it and none applies to it alone', () => {
  const access = policy('a', { kind: 'model-access', config: { deny_models: ['dear-*'], deny_providers: ['far'] } })
  const chain = compilePolicySet([access, policy('b', { targets: { models: ['guarded'] } })]).chainFor(subject())
  expect(chain.allowsModel(new ModelView('cheap', 'near'))).toBe(true)
  expect(chain.allowsModel(new ModelView('dear-one', 'near'))).toBe(false)
  expect(chain.allowsModel(new ModelView('cheap', 'far'))).toBe(false)
  expect(chain.allowsModel(new ModelView('guarded', 'near'))).toBe(false)
})

const some = <Value>(values: readonly Value[]) => fc.subarray([...values])
const targets: fc.Arbitrary<PolicyTargets> = fc.record(
  {
    teams: some(['team1', 'team2']),
    gateways: some(['g1', 'g2']),
    tokens: some(['t1', 't2', 't3']),
    models: some(['gpt-*', 'claude', '*']),
    families: some(['chat', 'embeddings']),
  },
  { requiredKeys: [] },
)
const subjects: fc.Arbitrary<ChainSubject> = fc.record({
  organizationId: fc.constant('o'),
  gatewayId: fc.constantFrom('g1', 'g2'),
  tokenId: fc.constantFrom('t1', 't2', 't3'),
  tokenLineage: some(['t1', 't2']),
  teamId: fc.constantFrom('team1', 'team2', null),
  policyIds: some(['p0', 'p1', 'p2']),
  model: fc.constantFrom('gpt-4o', 'claude', 'other'),
  family: fc.constantFrom(...familyNames),
})

test('finds exactly the matching policies in every lookup order', () => {
  fc.assert(
    fc.property(
      fc.array(targets, { maxLength: 4 }),
      fc.array(subjects, { minLength: 2, maxLength: 12 }),
      (all, asked) => {
        const policies = all.map((each, index) => policy(`p${index}`, { targets: each, position: index }))
        const set = compilePolicySet(policies)
        for (const each of asked) {
          const found = set.chainFor(each).at('pre_request')
          expect(found.map(({ id }) => id)).toEqual(policies.filter((one) => matches(one, each)).map(({ id }) => id))
        }
      },
    ),
    { numRuns: 1000 },
  )
})

test('never widens a policy by adding a target list', () => {
  fc.assert(
    fc.property(targets, some(['teams', 'gateways', 'tokens', 'models', 'families']), subjects, (all, kept, each) => {
      const fewer = Object.fromEntries(Object.entries(all).filter(([name]) => kept.some((one) => one === name)))
      if (matches({ id: 'p', targets: all }, each)) expect(matches({ id: 'p', targets: fewer }, each)).toBe(true)
    }),
    { numRuns: 1000 },
  )
})

const verdict = fc.constantFrom(...verdicts)

test('combines verdicts to the strongest in any order', () => {
  fc.assert(
    fc.property(verdict, verdict, verdict, (a, b, c) => {
      expect(stronger(a, b)).toBe(stronger(b, a))
      expect(stronger(a, stronger(b, c))).toBe(stronger(stronger(a, b), c))
      expect(stronger(a, a)).toBe(a)
      expect(stronger('allow', a)).toBe(a)
      if (a !== 'error' && b !== 'error' && endsChain(a) && !endsChain(b)) expect(stronger(a, b)).toBe(a)
    }),
  )
})

test('orders verdicts as block, deny, escalate, approval_required, pending, rate_limit, redact, rewrite, allow', () => {
  const order = [
    'block',
    'deny',
    'escalate',
    'approval_required',
    'pending',
    'rate_limit',
    'redact',
    'rewrite',
    'allow',
  ]
  const sorted = verdicts
    .filter((one) => one !== 'error')
    .toSorted((one, other) => (stronger(one, other) === one ? -1 : 1))
  expect(sorted).toEqual(order as typeof sorted)
})

test('does not apply the chain of a token’s policies to a model named like a policy id', () => {
  const own = policy('a', { targets: { tokens: [] } })
  const forModel = policy('b', { targets: { models: ['x'] } })
  const set = compilePolicySet([own, forModel])
  for (const model of ['m\na', 'a\nm', '\na\nm']) set.chainFor(subject({ model }))
  expect(set.chainFor(subject({ model: 'm', policyIds: ['a'] })).size).toBe(1)
})

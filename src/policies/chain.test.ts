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

test('a policy without targets is for all, and each list of targets narrows', () => {
  expect(idsOf([policy('a')], subject())).toEqual(['a'])
  const both = policy('a', { targets: { teams: ['team1'], models: ['gpt-*'] } })
  expect(idsOf([both], subject())).toEqual(['a'])
  expect(idsOf([both], subject({ teamId: 'team2' }))).toEqual([])
  expect(idsOf([both], subject({ teamId: null }))).toEqual([])
  expect(idsOf([both], subject({ model: 'claude' }))).toEqual([])
})

test('a token that names a policy has it whatever its teams, gateways and tokens say, but not its models and families', () => {
  const far = policy('a', { targets: { teams: ['other'], gateways: ['other'], tokens: [] } })
  expect(idsOf([far], subject())).toEqual([])
  expect(idsOf([far], subject({ policyIds: ['a'] }))).toEqual(['a'])
  const onlyVectors = policy('a', { targets: { families: ['embeddings'] } })
  expect(idsOf([onlyVectors], subject({ policyIds: ['a'] }))).toEqual([])
  expect(idsOf([policy('b')], subject({ policyIds: ['a'] }))).toEqual(['b'])
})

test('a policy for a token is for what was cloned or rotated from it', () => {
  const own = policy('a', { targets: { tokens: ['source'] } })
  expect(idsOf([own], subject())).toEqual([])
  expect(idsOf([own], subject({ tokenLineage: ['source'] }))).toEqual(['a'])
})

test('policies stand in order of their positions, and what is not enabled is not there', () => {
  const policies = [policy('c', { position: 3 }), policy('a', { position: 1 }), policy('b', { position: 2 })]
  expect(idsOf([...policies, policy('d', { enabled: false })], subject())).toEqual(['a', 'b', 'c'])
})

test('a policy of a kind that this version does not know is in its chain, broken', () => {
  const [broken] = compilePolicySet([policy('a', { kind: 'of-tomorrow' })])
    .chainFor(subject())
    .at('pre_request')
  expect(broken?.compiled).toBeInstanceOf(Error)
})

test('a fallback is allowed where no policy forbids it and none is for it alone', () => {
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

test('a chain looked up holds exactly the policies that match, whatever was looked up before', () => {
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

test('another list of targets never makes a policy be for more', () => {
  fc.assert(
    fc.property(targets, some(['teams', 'gateways', 'tokens', 'models', 'families']), subjects, (all, kept, each) => {
      const fewer = Object.fromEntries(Object.entries(all).filter(([name]) => kept.some((one) => one === name)))
      if (matches({ id: 'p', targets: all }, each)) expect(matches({ id: 'p', targets: fewer }, each)).toBe(true)
    }),
    { numRuns: 1000 },
  )
})

const verdict = fc.constantFrom(...verdicts)

test('verdicts combine to the strongest, in whatever order they come', () => {
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

test('the strength is block, deny, escalate, approval_required, pending, rate_limit, redact, rewrite, allow', () => {
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

test('a model whose name looks like a policy’s id does not give its chain to the tokens that have the policy', () => {
  const own = policy('a', { targets: { tokens: [] } })
  const forModel = policy('b', { targets: { models: ['x'] } })
  const set = compilePolicySet([own, forModel])
  for (const model of ['m\na', 'a\nm', '\na\nm']) set.chainFor(subject({ model }))
  expect(set.chainFor(subject({ model: 'm', policyIds: ['a'] })).size).toBe(1)
})

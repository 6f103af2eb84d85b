/**
 * What policies cost a request that they have nothing to say about: finding its chain and running the request's stage,
 * as ratios to parsing a body of about a kilobyte. `bun test/load/costs/policies-cost.ts`
 */
import { compilePolicySet } from '../../../src/policies/chain.ts'
import { ModelView, type PolicyContext, RequestView, TokenView } from '../../../src/policies/conditions/context.ts'
import { runStage } from '../../../src/policies/stages/run-stage.ts'
import type { StoredPolicy } from '../../../src/policies/stored-policy.ts'

const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Good morning to all. '.repeat(48) }] })
const parts = { family: 'chat', model: 'm', stream: true, sessionId: null, body: null, headers: new Headers() }
const none = { teamId: null, userId: null, gatewayId: null, metadata: {} }
const context: PolicyContext = {
  request: new RequestView({ ...parts, texts: () => [] }),
  response: null,
  token: new TokenView({ id: 't', purpose: 'general', roles: ['member'], ...none }),
  model: new ModelView('m', 'p'),
  now: new Date(),
}
const facts = { model: 'm', stream: true, inputEstimate: 1, outputLimit: null, choices: 1, sessionId: null }
const stage = {
  stage: 'pre_request',
  context,
  facts: { ...facts, beyondBody: false, unbounded: null },
  body: {},
  requestBody: {},
  texts: () => [],
  placeholders: null,
} as const
const tools = {
  fetch,
  resolve: async () => [],
  privateWebhooks: false,
  throwIfCut: () => undefined,
  signal: new AbortController().signal,
}

const policies = (count: number, change: Partial<StoredPolicy>): StoredPolicy[] =>
  Array.from({ length: count }, (_, index) => ({
    id: `policy-${index}`,
    kind: 'condition',
    stages: ['pre_request'],
    config: { verdict: 'block', reason_code: 'a.b' },
    when: 'true',
    targets: {},
    position: index + 1,
    mode: 'enforce',
    whenBroken: 'deny',
    enabled: true,
    version: 1,
    ...change,
  }))

/** Nanoseconds of processor time: the best of several rounds. */
function costOf(work: () => unknown): number {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < 15; round++) {
    const from = process.cpuUsage()
    for (let times = 0; times < 5000; times++) work()
    const { user, system } = process.cpuUsage(from)
    best = Math.min(best, ((user + system) * 1000) / 5000)
  }
  return best
}

const subject = {
  organizationId: 'o',
  gatewayId: 'g',
  tokenId: 't',
  teamId: 'team',
  policyIds: [],
  model: 'm',
} as const
const costOfPolicies = (stored: readonly StoredPolicy[]): number => {
  const set = compilePolicySet(stored)
  return costOf(() => {
    const chain = set.chainFor({ ...subject, family: 'chat' })
    const asked = chain.at('pre_request')
    const run = { policies: asked, subject: stage, tools, now: () => 0, broken: () => undefined }
    if (asked.length > 0) runStage(run)
  })
}

const parse = costOf(() => JSON.parse(body))
console.log(`Parsing a body of ${body.length} bytes = 1.00 (${parse.toFixed(0)} ns)`)
for (const [name, stored] of [
  ['no policy', []],
  ['100 policies for other teams', policies(100, { targets: { teams: ['other'] } })],
  ['100 policies for other models and tokens', policies(100, { targets: { models: ['x*'], tokens: ['other'] } })],
  ['1 policy whose condition does not hold', policies(1, { when: 'request.model == "other"' })],
  ['100 policies whose conditions do not hold', policies(100, { when: 'request.model == "other"' })],
] as const) {
  console.log(`${name}: ${(costOfPolicies(stored) / parse).toFixed(2)}`)
}

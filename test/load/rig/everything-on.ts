/**
 * An installation as it is measured: a priced model, a chain of ten policies of which one scans 400 terms in requests
 * and answers, and a token with bindings, a budget and a number of requests. Nothing of it refuses what is sent.
 */
import { z } from 'zod'
import { api, createToken, expectAnswer, installation } from '../../support/client.ts'
import { until } from '../../support/eventually.ts'
import type { Gatehouse } from '../../support/harness.ts'
import { benchModel, requestBody, requestHeaders, type Target } from './target.ts'
import { words } from './words.ts'

/** The families whose answers have texts and tools: a policy of answers is for no other. */
const generating = { families: ['chat', 'responses', 'messages'] }
const onRequest = { stages: ['pre_request'] }

interface PolicyBody {
  name: string
  kind: string
  stages: readonly string[]
  when?: string
  targets?: object
  config: object
}

export const termPolicy = (count: number): PolicyBody => ({
  name: `${count} terms`,
  kind: 'term-filter',
  stages: ['pre_request', 'pre_response'],
  targets: generating,
  config: { terms: words(count), action: 'block' },
})

const otherPolicies: readonly PolicyBody[] = [
  { ...onRequest, name: 'models', kind: 'model-access', config: { allow_models: ['bench-*', 'simulator/*'] } },
  { ...onRequest, name: 'sizes', kind: 'request-limits', config: { max_input_characters: 100_000, max_tools: 20 } },
  { ...onRequest, name: 'tools', kind: 'tool-access', targets: generating, config: { deny: ['shell'] } },
  { ...onRequest, name: 'personal data', kind: 'pii', config: { action: 'redact' } },
  { ...onRequest, name: 'secrets', kind: 'secrets', config: { action: 'block' } },
  { ...onRequest, name: 'injection', kind: 'prompt-injection', config: { action: 'block' } },
  {
    ...onRequest,
    name: 'project names',
    kind: 'pattern-filter',
    config: { patterns: [{ name: 'project', pattern: 'PRJ-[0-9]{6}' }], action: 'block' },
  },
  {
    ...onRequest,
    name: 'no strangers',
    kind: 'condition',
    when: '!("member" in token.roles)',
    config: { verdict: 'deny', reason_code: 'bench.stranger' },
  },
  { ...onRequest, name: 'long talks', kind: 'audit', when: 'size(request.messages) > 1000', config: {} },
]

const providerPage = z.looseObject({ providers: z.array(z.looseObject({ id: z.uuid(), name: z.string() })) })

/** Puts the model of the bench into the catalog, with a price and an upper limit of its output. */
export async function priceModel(gatehouse: Gatehouse): Promise<void> {
  const { providers } = expectAnswer(await api(gatehouse, '/v1/catalog/providers'), 200, providerPage)
  const body = {
    id: benchModel,
    provider_id: providers.find(({ name }) => name === 'openai')?.id,
    price: { input_per_million: 1, output_per_million: 1 },
    max_output_tokens: 100,
  }
  expectAnswer(await api(gatehouse, '/v1/catalog/models', { body }), 201, z.looseObject({}))
}

export const makePolicy = async (gatehouse: Gatehouse, body: PolicyBody): Promise<string> =>
  expectAnswer(await api(gatehouse, '/v1/policies', { body }), 201, z.looseObject({ id: z.uuid() })).id

/** What chat completions are sent to on a gateway. */
export const chatTarget = (gatewayUrl: string, token: string, name = 'governed'): Target => ({
  name,
  url: `${gatewayUrl}/v1/chat/completions`,
  token,
})

/** Waits until the target answers 200: until the gateway knows what was made for it. */
export const answers = (target: Target): Promise<void> =>
  until(
    `${target.name} is answered`,
    async () => {
      const init = { method: 'POST', headers: requestHeaders(target), body: requestBody(false) }
      const answer = await fetch(target.url, init)
      await answer.text()
      return answer.ok
    },
    { withinMs: 60_000 },
  )

/** Makes the ten policies and gives their ids, for all or for those whom `targets` says. */
export async function makeChain(gatehouse: Gatehouse, targets: object = {}): Promise<string[]> {
  const ids: string[] = []
  for (const policy of [termPolicy(400), ...otherPolicies]) {
    ids.push(await makePolicy(gatehouse, { ...policy, targets: { ...policy.targets, ...targets } }))
  }
  return ids
}

/** Makes a token with bindings, a budget and a number of requests, and gives its secret. */
export async function makeLimitedToken(gatehouse: Gatehouse, fields: object = {}): Promise<string> {
  const { teamId } = await installation(gatehouse)
  const { token_value: token } = await createToken(gatehouse, {
    bindings: { team_id: teamId, model_filter: ['bench-*', 'simulator/*'] },
    max_budget: 1_000_000,
    max_requests: 1_000_000_000,
    ...fields,
  })
  return token
}

/** Turns everything on, and gives what to send requests to. */
export async function turnEverythingOn(gatehouse: Gatehouse): Promise<Target> {
  await priceModel(gatehouse)
  await makeChain(gatehouse)
  const target = chatTarget(gatehouse.gatewayUrl, await makeLimitedToken(gatehouse))
  await answers(target)
  return target
}

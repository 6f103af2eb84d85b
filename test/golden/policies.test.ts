/**
 * What each kind of policy decides: the policy and the request are the example of the kind's page in the handbook, and
 * `policy/KIND.json` holds the verdict, what was found, and request and answer as the policy leaves them.
 */
import { expect, test } from 'bun:test'
import { readPages } from '../../src/handbook/read-pages.ts'
import { chat } from '../../src/languages/chat/dialect.ts'
import { isObject, type JsonObject } from '../../src/languages/reading/json-value.ts'
import { TokenView } from '../../src/policies/conditions/context.ts'
import { policyKinds } from '../../src/policies/kinds/index.ts'
import { checkContent, contentOf, createPolicyBody } from '../../src/policies/policy-body.ts'
import { tryPolicies } from '../../src/policies/trials/trial.ts'
import { expectGolden, pretty } from './golden-file.ts'

const pages = new Map((await readPages()).map(({ path, text }) => [path, text]))

/** A file that the kind's page shows; null where it shows none of that name. */
function shown(kind: string, name: string): unknown {
  const page = pages.get(`policies/${kind}`) ?? ''
  const block = new RegExp(`^\`\`\`(\\w+) file=${name}\\n([\\s\\S]*?)^\`\`\`$`, 'm').exec(page)
  if (block === null) return null
  const [, language, text = ''] = block
  return language === 'yaml' ? Bun.YAML.parse(text) : JSON.parse(text)
}

function shownObject(kind: string, name: string): JsonObject | null {
  const value = shown(kind, name)
  return isObject(value) ? value : null
}

const ordinary = { model: 'simulator/echo', messages: [{ role: 'user', content: 'Hello' }] }
const token = new TokenView({
  ...{ id: 'token-1', purpose: 'general', roles: ['member'], teamId: null, userId: null, gatewayId: null },
  metadata: {},
})
const tools = {
  // The service that the webhook asks.
  fetch: async () => Response.json({ verdict: 'deny', reason_code: 'judge.no', message: 'Not today' }),
  resolve: async () => ['93.184.216.34'],
  privateWebhooks: false,
  signal: new AbortController().signal,
  throwIfCut: () => undefined,
}

test.each([...policyKinds.keys()])('%s decides as its golden file says', async (kind) => {
  const { policies } = shownObject(kind, `${kind}.yaml`) ?? {}
  expect(policies).toBeArrayOfSize(1)
  const content = contentOf(createPolicyBody.parse(Array.isArray(policies) ? policies[0] : null))
  checkContent(content)
  const request = shownObject(kind, 'request.json') ?? structuredClone(ordinary)
  const body = shownObject(kind, 'response.json')
  const outcome = await tryPolicies(
    [{ ...content, id: 'policy-1', position: 0, version: 0 }],
    {
      ...{ dialect: chat, request, token, provider: 'simulator', headers: new Headers() },
      response: body === null ? null : { status: 200, body },
      now: new Date('2026-01-01T00:00:00Z'),
    },
    { tools, monotonic: () => 0 },
  )
  const findings = outcome.findings.map(({ stage, said: { decision, policy } }) => ({
    ...{ stage, mode: policy.enforced ? 'enforce' : 'monitor', verdict: decision.verdict },
    ...{ reason_code: decision.reasonCode, message: decision.message, targets: decision.targets },
  }))
  const { verdict, reasonCode: reason_code } = outcome
  await expectGolden(`policy/${kind}.json`, pretty({ verdict, reason_code, findings, request, response: body }))
})

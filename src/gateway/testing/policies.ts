/** Policies as the state holds them, streams to look at, and a gateway with policies, for the tests of this folder. */
import { compilePolicySet } from '../../policies/chain.ts'
import type { StoredPolicy } from '../../policies/stored-policy.ts'
import { completion, startTestGateway, type TestGateway } from './gateway.ts'

export const policy = (change: Partial<StoredPolicy> & Pick<StoredPolicy, 'id' | 'kind' | 'config'>): StoredPolicy => ({
  stages: ['pre_request'],
  when: null,
  targets: {},
  position: 1,
  mode: 'enforce',
  whenBroken: 'deny',
  enabled: true,
  version: 1,
  ...change,
})

export const frame = (data: object | '[DONE]') => `data: ${data === '[DONE]' ? data : JSON.stringify(data)}\n\n`
export const streamOf = (...parts: string[]): string =>
  [
    ...parts.map((content) =>
      frame({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content } }] }),
    ),
    frame({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
    frame('[DONE]'),
  ].join('')

export const eventStream = { headers: { 'content-type': 'text/event-stream' } }

export async function startPoliced(
  policies: StoredPolicy[],
  answer: () => Response | Promise<Response> = () => Response.json(completion),
  settings: Parameters<typeof startTestGateway>[1] = {},
): Promise<TestGateway> {
  const gateway = await startTestGateway(answer, settings)
  gateway.worker.policies = compilePolicySet(policies)
  return gateway
}

export const askResponses = ({ url, secret }: TestGateway, body: string): Promise<Response> =>
  fetch(`${url}/v1/responses`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body,
  })

/** The content of a chat stream. */
export const streamedText = (body: string): string =>
  [...body.matchAll(/^data: (\{.*)$/gm)]
    .map(([, data = '']) => JSON.parse(data).choices?.[0]?.delta?.content ?? '')
    .join('')

/** A provider that falls silent in the midst of a stream. */
import { expect, test } from 'bun:test'
import { messagesStream } from '../../../test/fakes/messages.ts'
import { compilePolicySet } from '../../policies/chain.ts'
import { policy, streamOf } from '../testing/policies.ts'
import { startTranslating } from '../testing/translating.ts'
import { testModel } from '../testing/worker.ts'

const routes = { chat: '/v1/chat/completions', responses: '/v1/responses', messages: '/v1/messages' } as const
const callers = ['chat', 'responses', 'messages'] as const

/** It says some, and nothing more. */
const silentAfter = (bytes: Uint8Array) => () =>
  new Response(new ReadableStream({ start: (controller) => controller.enqueue(bytes) }), {
    headers: { 'content-type': 'text/event-stream' },
  })

test('fails a silent stream with one code, whether policies held it or not', async () => {
  const { running, answers } = await startTranslating({ idle_timeout_seconds: 0.3 })
  running.worker.catalog.push(
    testModel({ id: 'chatter', providerId: 'openai', upstreamModel: 'up-chatter', families: ['chat'] }),
  )
  const spoken = streamOf('Hello', ' there')
  answers[routes.chat] = silentAfter(Buffer.from(spoken.slice(0, spoken.indexOf('data: [DONE]'))))
  answers[routes.messages] = silentAfter(messagesStream({ stopped: false }))
  const held = (stage: 'post_request' | 'pre_response') =>
    policy({
      ...{ id: stage, kind: 'condition', stages: [stage], when: 'response.text.contains("zebra")' },
      config: { verdict: 'deny', reason_code: 'c.c' },
    })
  const told = async (caller: (typeof callers)[number], model: string): Promise<string> => {
    const answer = await fetch(running.url + routes[caller], {
      method: 'POST',
      headers: { authorization: `Bearer ${running.secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        ...{ model, stream: true },
        ...(caller === 'responses'
          ? { input: 'Hello' }
          : { messages: [{ role: 'user', content: 'Hello' }], max_tokens: 50 }),
      }),
    })
    const [code = 'none'] = (await answer.text()).match(/provider_primary_path_error|upstream\w*_error/) ?? []
    return `${caller} of ${model}: ${code}`
  }
  const asked = callers.flatMap((caller) => ['chatter', 'anthropic'].map((model) => [caller, model] as const))
  for (const policies of [[], [held('post_request')], [held('pre_response')]]) {
    running.worker.policies = compilePolicySet(policies)
    const codes = await Promise.all(asked.map(([caller, model]) => told(caller, model)))
    const code = (caller: string) => (caller === 'messages' ? 'upstream_error' : 'provider_primary_path_error')
    expect(codes).toEqual(asked.map(([caller, model]) => `${caller} of ${model}: ${code(caller)}`))
  }
  const reasons = running.worker.journal.outcomes().map(({ reason_code }) => reason_code)
  expect(reasons).toEqual(Array.from({ length: 3 * asked.length }, () => 'provider.timeout'))
  await running.stop()
})

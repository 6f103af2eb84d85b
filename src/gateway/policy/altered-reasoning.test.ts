/** Thinking that a policy altered, when its caller sends it back to the messages provider that signed it. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type Anthropic from '@anthropic-ai/sdk'
import { messageFrames, messagesAnswer } from '../../../test/fakes/messages.ts'
import { compilePolicySet } from '../../policies/chain.ts'
import type { StoredPolicy } from '../../policies/stored-policy.ts'
import type { TestGateway } from '../testing/gateway.ts'
import { policy } from '../testing/policies.ts'
import { sse, startTranslating, type TranslatingGateway } from '../testing/translating.ts'

let running: TestGateway
let anthropic: Anthropic
let answers: TranslatingGateway['answers']

beforeEach(async () => {
  ;({ running, anthropic, answers } = await startTranslating())
  for (const upstream of running.worker.upstreams) Object.assign(upstream, { allowUnlistedModels: true })
})
afterEach(() => running.stop())

const model = 'up-anthropic'
const hello = { role: 'user' as const, content: 'Hello' }
const goOn = { role: 'user' as const, content: 'Go on' }

const spoken = { type: 'text', text: 'Stripes.' }
const thinking = (text: string, signature?: string) => ({ type: 'thinking', thinking: text, signature })
type Thinking = ReturnType<typeof thinking>

const usage = { input_tokens: 5, output_tokens: 9 }
const message = { id: 'm', type: 'message', role: 'assistant', model, stop_reason: 'end_turn', usage }

const whole = (thought: Thinking) => Response.json({ ...message, content: [thought, spoken] })

function streamed({ thinking: text, signature }: Thinking): Response {
  const delta = (index: number, change: object) => ({ type: 'content_block_delta', index, delta: change })
  const thoughts = text.match(/.{1,3}/gs) ?? []
  return sse(
    messageFrames([
      { type: 'message_start', message: { ...message, content: [], stop_reason: null } },
      { type: 'content_block_start', index: 0, content_block: thinking('', '') },
      ...thoughts.map((piece) => delta(0, { type: 'thinking_delta', thinking: piece })),
      ...(signature ? [delta(0, { type: 'signature_delta', signature })] : []),
      { type: 'content_block_stop', index: 0 },
      { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } },
      delta(1, { type: 'text_delta', text: spoken.text }),
      { type: 'content_block_stop', index: 1 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage },
      { type: 'message_stop' },
    ]),
  )()
}

const govern = (...policies: StoredPolicy[]) => {
  running.worker.policies = compilePolicySet(policies)
}
const rewriting = (stage: StoredPolicy['stages'][number]) =>
  policy({
    ...{ id: 'r', kind: 'term-filter', stages: [stage] },
    config: { terms: ['zebra'], action: 'redact' },
  })

/** What the client keeps of an answer that begins with this thought. */
async function kept(thought: Thinking, stream: boolean) {
  answers['/v1/messages'] = () => (stream ? streamed(thought) : whole(thought))
  const asked = { model, max_tokens: 50, messages: [hello] }
  const { content } = stream
    ? await anthropic.messages.stream(asked).finalMessage()
    : await anthropic.messages.create(asked)
  return content
}

/** What the provider gets of a conversation. */
async function sentOf(messages: readonly object[]): Promise<string> {
  answers['/v1/messages'] = () => new Response(messagesAnswer(), { headers: { 'content-type': 'application/json' } })
  const answer = await fetch(`${running.url}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': running.secret, 'content-type': 'application/json' },
    body: bodyOf(messages),
  })
  expect(answer.status).toBe(200)
  return running.seen.at(-1)?.body ?? ''
}
const bodyOf = (messages: readonly object[]) => JSON.stringify({ model, max_tokens: 50, messages, temperature: 1 })

for (const [name, stream] of [
  ['a stream', true],
  ['a whole answer', false],
] as const) {
  describe(`thinking of ${name}`, () => {
    test.each(['post_request', 'pre_response'] as const)(
      'is dropped when %s altered it and it comes back',
      async (stage) => {
        govern(rewriting(stage))
        const content = await kept(thinking('Is it a zebra?', 'c2ln'), stream)
        expect(content[0]).toMatchObject({ type: 'thinking', signature: 'gatehouse.messages..' })
        expect(JSON.stringify(content)).not.toContain('zebra')
        const sent = await sentOf([hello, { role: 'assistant', content }, goOn])
        expect(sent).toBe(bodyOf([hello, { role: 'assistant', content: content.slice(1) }, goOn]))
      },
    )

    test('comes back byte for byte when no policy altered it', async () => {
      govern(rewriting('post_request'))
      const content = await kept(thinking('Is it a horse?', 'c2ln'), stream)
      expect(content[0]).toMatchObject({ type: 'thinking', thinking: 'Is it a horse?', signature: 'c2ln' })
      const messages = [hello, { role: 'assistant', content }, goOn]
      expect(await sentOf(messages)).toBe(bodyOf(messages))
    })

    test('comes back when it was never signed, altered or not', async () => {
      govern(rewriting('post_request'))
      const content = await kept(thinking('Is it a zebra?'), stream)
      expect(JSON.stringify(content)).not.toContain('zebra')
      const messages = [hello, { role: 'assistant', content }, goOn]
      expect(await sentOf(messages)).toBe(bodyOf(messages))
    })

    test('carries one alteration mark for chat callers too', async () => {
      govern(rewriting('post_request'))
      const thought = thinking('Is it a zebra?', 'c2ln')
      answers['/v1/messages'] = () => (stream ? streamed(thought) : whole(thought))
      const answer = await running.chat({ model: 'anthropic', stream, max_tokens: 50, messages: [hello] })
      const text = await answer.text()
      expect(text).toContain('"signature":"gatehouse.messages.."')
    })
  })
}

test('is dropped together with a message that holds nothing else', async () => {
  const alone = { role: 'assistant', content: [thinking('[X]', 'gatehouse.messages..')] }
  expect(await sentOf([hello, alone, goOn])).toBe(bodyOf([hello, goOn]))
})

test('drops signed thinking that a policy alters in a request', async () => {
  govern(rewriting('pre_request'))
  const turn = (...content: object[]) => ({ role: 'assistant', content })
  const others = [thinking('A horse', 'aG9yc2U'), spoken]
  const sent = await sentOf([hello, turn(thinking('A zebra', 'c2ln'), ...others), goOn])
  expect(sent).toBe(bodyOf([hello, turn(...others), goOn]))
  const unsigned = await sentOf([hello, turn(thinking('A zebra'), ...others), goOn])
  expect(JSON.parse(unsigned).messages[1].content).toHaveLength(3)
  expect(unsigned).not.toContain('zebra')
})

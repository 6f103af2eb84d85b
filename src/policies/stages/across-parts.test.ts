import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { chat } from '../../languages/chat/dialect.ts'
import type { Dialect } from '../../languages/dialect.ts'
import { messages } from '../../languages/messages/dialect.ts'
import { responses } from '../../languages/responses/dialect.ts'
import { compilePolicySet } from '../chain.ts'
import { ruleOf } from '../redaction.ts'
import type { StoredPolicy } from '../stored-policy.ts'
import { findInTexts } from './find-in-texts.ts'

const stored: StoredPolicy = {
  ...{ id: 'p', kind: 'term-filter', stages: ['pre_request'], config: {}, when: null, targets: {}, position: 1 },
  ...{ mode: 'enforce', whenBroken: 'deny', enabled: true, version: 1 },
}

/** What a term filter says of a body, and the body after it. */
async function filtered(dialect: Dialect, body: Record<string, unknown>, action = 'redact', terms = ['swordfish']) {
  const subject = { organizationId: 'o', gatewayId: 'g', tokenId: 't', teamId: null, policyIds: [], model: '' }
  const set = compilePolicySet([{ ...stored, config: { terms, action } }])
  const [policy] = set.chainFor({ ...subject, family: 'chat' }).at('pre_request')
  if (policy === undefined || policy.compiled instanceof Error || policy.compiled.form !== 'text')
    throw new Error('none')
  const rule = ruleOf(policy, policy.compiled, null)
  const decision = await findInTexts(policy.compiled, rule, dialect.requestText(body), {
    now: () => 0,
    tools: { throwIfCut: () => undefined },
  })
  for (const change of decision?.changes ?? []) if ('slot' in change) change.slot.replace(change.text)
  return { verdict: decision?.verdict ?? null, body }
}

const parts = (...texts: string[]) => texts.map((text) => ({ type: 'text', text }))
const said = (...texts: string[]) => ({ model: 'm', messages: [{ role: 'user', content: parts(...texts) }] })

test.each([
  ['chat', chat, said('a sword', 'fish b'), said('a [TERM]', ' b')],
  ['messages', messages, said('a sword', 'fish b'), said('a [TERM]', ' b')],
  [
    'responses',
    responses,
    {
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'sword' },
            { type: 'input_text', text: 'fish' },
          ],
        },
      ],
    },
    {
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: '[TERM]' },
            { type: 'input_text', text: '[TERM]' },
          ],
        },
      ],
    },
  ],
])('redacts a term that is split over two parts of a message in %s', async (_, dialect, body, after) => {
  expect(await filtered(dialect, structuredClone(body))).toEqual({ verdict: 'redact', body: after })
  expect((await filtered(dialect, structuredClone(body), 'block')).verdict).toBe('block')
})

const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } }
const typed = (type: string) => ['sword', 'fish'].map((text) => ({ type, text }))
const result = (...texts: string[]) => ({ type: 'tool_result', tool_use_id: 'a', content: parts(...texts) })

test.each<[string, Dialect, Record<string, unknown>]>([
  ['a tool message of chat', chat, { messages: [{ role: 'tool', tool_call_id: 'a', content: typed('text') }] }],
  ['a tool result of messages', messages, { messages: [{ role: 'user', content: [result('sword', 'fish')] }] }],
  ['an output of responses', responses, { input: [{ type: 'function_call_output', output: typed('input_text') }] }],
  [
    'a message with an image between',
    chat,
    { messages: [{ role: 'user', content: [...parts('sword'), image, ...parts('fish')] }] },
  ],
])('finds a term that is split over two parts of %s', async (_, dialect, body) => {
  expect((await filtered(dialect, structuredClone(body), 'block')).verdict).toBe('block')
  const redacted = await filtered(dialect, structuredClone(body))
  expect(JSON.stringify(redacted.body).match(/\[TERM\]/g)).toHaveLength(2)
})

test('does not join two tool results', async () => {
  const body = { messages: [{ role: 'user', content: [result('sword', '.'), result('fish', '.')] }] }
  expect((await filtered(messages, body)).verdict).toBeNull()
  const beside = { messages: [{ role: 'user', content: [...parts('sword'), result('fish')] }] }
  expect((await filtered(messages, beside)).verdict).toBeNull()
})

test('finds a term over many parts and another beside it', async () => {
  expect((await filtered(chat, said(...'a swordfish!'))).body).toEqual(said('a', ' ', ...Array(9).fill('[TERM]'), '!'))
  expect((await filtered(chat, said('swordfish sword', 'fish swordfish'))).body).toEqual(
    said('[TERM] [TERM]', ' [TERM]'),
  )
})

test('does not join two messages', async () => {
  const body = { messages: ['sword', 'fish'].map((content) => ({ role: 'user', content: parts(content, '.') })) }
  expect((await filtered(chat, body)).verdict).toBeNull()
})

test('finds a term at any split of short and long messages', async () => {
  const filler = 'none of this is a term. '
  await fc.assert(
    fc.asyncProperty(
      fc.nat(3000),
      fc.nat(3000),
      fc.array(fc.nat(6008), { maxLength: 5 }),
      async (before, behind, cuts) => {
        const text = `${filler.repeat(130).slice(0, before)}swordfish${filler.repeat(130).slice(0, behind)}`
        const places = [...new Set([...cuts.map((cut) => cut % text.length), text.length])].sort(
          (one, other) => one - other,
        )
        const texts = places
          .map((place, index) => text.slice(places[index - 1] ?? 0, place))
          .filter((part) => part !== '')
        const { body } = await filtered(chat, said(...texts))
        const left = JSON.stringify(body.messages).replaceAll('"},{"type":"text","text":"', '')
        expect(left.replace(/(?:\[TERM\])+/, 'swordfish')).toContain(text)
        expect(left).not.toContain('swordfish')
      },
    ),
    { numRuns: 60 },
  )
})

test('yields to the event loop while it reads very many parts of one message', async () => {
  const texts = [...'none of these letters is of it '.repeat(700), ...'swordfish']
  expect((await filtered(chat, said(...texts), 'block')).verdict).toBe('block')
})

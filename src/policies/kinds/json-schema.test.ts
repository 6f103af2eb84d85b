import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { WorkBudgetExceeded } from '../../inspection/work-budget.ts'
import { chat } from '../../languages/chat/dialect.ts'
import type { TextSlot } from '../../languages/reading/texts/text-slot.ts'
import { ModelView, RequestView, TokenView } from '../conditions/context.ts'
import { jsonSchema } from './json-schema.ts'
import type { CompiledPolicy, WholePolicy } from './kind.ts'

const token = { id: 't', purpose: '', roles: [], teamId: null, userId: null, gatewayId: null, metadata: {} }

/** The verdict of a schema on a request's body. */
const verdictOf = (schema: Record<string, unknown>, body: Record<string, unknown>): string | null =>
  verdictBy(compiledFor(schema), body)

const compiledFor = (schema: Record<string, unknown>): CompiledPolicy =>
  jsonSchema.compile({ schema, applies_to: 'body' }, { stages: ['pre_request'] })

function verdictBy(compiled: CompiledPolicy, body: Record<string, unknown>): string | null {
  const decision = consider(compiled, body, [], () => undefined)
  if (decision instanceof Promise) throw new Error('The policy waits')
  return decision?.verdict ?? null
}

function consider(
  compiled: CompiledPolicy,
  body: Record<string, unknown>,
  texts: readonly TextSlot[],
  throwIfCut: () => void,
  family = 'chat',
): ReturnType<WholePolicy['consider']> {
  if (compiled.form !== 'whole') throw new Error('The policy reads texts')
  return compiled.consider(
    {
      stage: 'pre_request',
      context: {
        request: new RequestView({
          ...{ family, model: 'm', stream: false, sessionId: null, texts: () => [], body },
          headers: new Headers(),
        }),
        ...{ response: null, token: new TokenView(token), model: new ModelView('m', 'p'), now: new Date(0) },
      },
      facts: chat.read({ model: 'm', messages: [] }),
      ...{ body, requestBody: body, texts },
    },
    {
      ...{ fetch: () => Promise.reject(new Error('none')), resolve: () => Promise.resolve([]), privateWebhooks: false },
      throwIfCut,
      signal: new AbortController().signal,
    },
  )
}

test('holds the arguments of the MCP tool that a request calls to its schema', () => {
  const schema = { properties: { amount: { maximum: 100 } }, required: ['amount'] }
  const compiled = jsonSchema.compile({ schema, applies_to: 'tool_arguments' }, { stages: ['pre_request'] })
  const targetsOf = (method: string, given: unknown) => {
    const body = { method, params: { name: 'bank__pay', arguments: given }, tools: [{ name: 'bank__pay' }] }
    const decision = consider(compiled, body, [], () => undefined, 'mcp')
    if (decision instanceof Promise) throw new Error('The policy waits')
    return decision?.targets ?? null
  }
  expect(targetsOf('tools/call', { amount: 99 })).toBeNull()
  expect(targetsOf('tools/call', { amount: 101 })).toEqual(['tools.bank__pay'])
  expect(targetsOf('tools/call', {})).toEqual(['tools.bank__pay'])
  expect(targetsOf('tools/call', 'text')).toEqual(['tools.bank__pay'])
  expect(targetsOf('prompts/get', {})).toBeNull()
})

test('holds a body to its schema, with references', () => {
  const schema = { $defs: { short: { maxLength: 3 } }, properties: { model: { $ref: '#/$defs/short' } } }
  expect(verdictOf(schema, { model: 'abc' })).toBeNull()
  expect(verdictOf(schema, { model: 'abcd' })).toBe('block')
  expect(
    verdictOf({ properties: { a: { const: { items: 1, enum: [2] } } } }, { a: { items: 1, enum: [2] } }),
  ).toBeNull()
})

test('tells unique items as JSON compares values', () => {
  const compiled = compiledFor({ properties: { list: { uniqueItems: true } } })
  fc.assert(
    fc.property(fc.array(fc.jsonValue({ maxDepth: 2 }), { maxLength: 5 }), fc.boolean(), (items, twice) => {
      const list: unknown[] = JSON.parse(JSON.stringify(twice ? [...items, items[0] ?? null] : items))
      const isUnique = list.every((item, index) => list.slice(0, index).every((other) => !Bun.deepEquals(item, other)))
      expect(verdictBy(compiled, { list }) === null).toBe(isUnique)
    }),
    { numRuns: 25 },
  )
  const swapped = [
    { a: 1, b: [2] },
    { b: [2], a: 1 },
  ]
  expect(verdictBy(compiled, { list: swapped })).toBe('block')
})

test('cannot decide where a body takes too much work', () => {
  const many = Array.from({ length: 100_000 }, (_, index) => index)
  expect(() => verdictOf({ type: 'object' }, { many })).toThrow(WorkBudgetExceeded)
  const tree = { anyOf: [{ $ref: '#/$defs/node' }, { $ref: '#/$defs/node' }] }
  const schema = { $defs: { node: { properties: { next: tree }, required: ['end'] } }, properties: { next: tree } }
  let body: Record<string, unknown> = {}
  for (let depth = 0; depth < 40; depth++) body = { next: body, end: true }
  body = { next: { ...body, end: true } }
  expect(() => verdictOf(schema, body)).toThrow(WorkBudgetExceeded)
})

test('checks long texts in turns, and stops once the exchange is cut', async () => {
  const compiled = jsonSchema.compile({ schema: { type: 'object' } }, { stages: ['post_request'] })
  const read: number[] = []
  const slots = ['{}', 'no JSON', `"${'x'.repeat(20_000)}"`, '{}'].map(
    (text, index): TextSlot => ({
      ...{ member: `m${index}`, kind: 'content', role: 'assistant', replace: () => undefined },
      get text() {
        read.push(index)
        return text
      },
    }),
  )
  expect(await consider(compiled, {}, slots, () => undefined)).toMatchObject({ targets: ['m1', 'm2'] })
  read.length = 0
  let turns = 0
  const cut = new Error('cut')
  const stopped = consider(compiled, {}, slots, () => {
    turns += 1
    if (turns === 3) throw cut
  })
  expect(await Promise.resolve(stopped).catch((error: unknown) => error)).toBe(cut)
  expect(read.slice(slots.length)).toEqual([0, 1])
})

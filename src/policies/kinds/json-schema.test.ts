import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { chat } from '../../dialects/chat.ts'
import { TooMuchWork } from '../../inspection/work.ts'
import { ModelView, RequestView, TokenView } from '../context.ts'
import { jsonSchema } from './json-schema.ts'

const token = { id: 't', purpose: '', roles: [], teamId: null, userId: null, gatewayId: null, metadata: {} }

/** The verdict of a schema on a request's body. */
function verdictOf(schema: Record<string, unknown>, body: Record<string, unknown>): string | null {
  const compiled = jsonSchema.compile({ schema, applies_to: 'body' }, { stages: ['pre_request'] })
  if (compiled.form !== 'whole') throw new Error('The policy reads texts')
  const decision = compiled.consider(
    {
      stage: 'pre_request',
      context: {
        request: new RequestView({
          ...{ family: 'chat', model: 'm', stream: false, sessionId: null, texts: () => [], body },
          headers: new Headers(),
        }),
        ...{ response: null, token: new TokenView(token), model: new ModelView('m', 'p'), now: new Date(0) },
      },
      facts: chat.read({ model: 'm', messages: [] }),
      ...{ body, requestBody: body, texts: [] },
    },
    {
      ...{ fetch: () => Promise.reject(new Error('none')), resolve: () => Promise.resolve([]), privateWebhooks: false },
      signal: new AbortController().signal,
    },
  )
  if (decision instanceof Promise) throw new Error('The policy waits')
  return decision?.verdict ?? null
}

test('holds a body to its schema, with references', () => {
  const schema = { $defs: { short: { maxLength: 3 } }, properties: { model: { $ref: '#/$defs/short' } } }
  expect(verdictOf(schema, { model: 'abc' })).toBeNull()
  expect(verdictOf(schema, { model: 'abcd' })).toBe('block')
  expect(
    verdictOf({ properties: { a: { const: { items: 1, enum: [2] } } } }, { a: { items: 1, enum: [2] } }),
  ).toBeNull()
})

test('tells unique items as JSON compares values', () => {
  fc.assert(
    fc.property(fc.array(fc.jsonValue({ maxDepth: 2 }), { maxLength: 5 }), fc.boolean(), (items, twice) => {
      const list: unknown[] = JSON.parse(JSON.stringify(twice ? [...items, items[0] ?? null] : items))
      const isUnique = list.every((item, index) => list.slice(0, index).every((other) => !Bun.deepEquals(item, other)))
      expect(verdictOf({ properties: { list: { uniqueItems: true } } }, { list }) === null).toBe(isUnique)
    }),
    { numRuns: 25 },
  )
  const swapped = [
    { a: 1, b: [2] },
    { b: [2], a: 1 },
  ]
  expect(verdictOf({ properties: { list: { uniqueItems: true } } }, { list: swapped })).toBe('block')
})

test('cannot decide where a body takes too much work', () => {
  const many = Array.from({ length: 100_000 }, (_, index) => index)
  expect(() => verdictOf({ type: 'object' }, { many })).toThrow(TooMuchWork)
  const tree = { anyOf: [{ $ref: '#/$defs/node' }, { $ref: '#/$defs/node' }] }
  const schema = { $defs: { node: { properties: { next: tree }, required: ['end'] } }, properties: { next: tree } }
  let body: Record<string, unknown> = {}
  for (let depth = 0; depth < 40; depth++) body = { next: body, end: true }
  body = { next: { ...body, end: true } }
  expect(() => verdictOf(schema, body)).toThrow(TooMuchWork)
})

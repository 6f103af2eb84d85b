import { expect, test } from 'bun:test'
import type { OfferKind } from '../connection.ts'
import { shapeFault } from './offer-shape.ts'

const inputSchema = { type: 'object', properties: { a: { type: 'string', pattern: '[' } } }
const tool = (more: object = {}) => ({ name: 'a', inputSchema, ...more })
const output = (schema: object) => tool({ outputSchema: { type: 'object', ...schema } })
const resource = (more: object = {}) => ({ uri: 'file:///a', name: 'a', ...more })

test('accepts everything that the protocol schema allows, including unknown members', () => {
  const icons = [{ src: 'data:,', sizes: ['any'], theme: 'dark', odd: 1 }]
  const annotations = { audience: ['user'], priority: 0.5, lastModified: '2026-01-12T15:00:58Z' }
  const properties = {
    list: { type: ['array', 'null'], items: { $ref: '#/$defs/a~1b' }, enum: [null, []] },
    self: { anyOf: [{ $ref: '#' }, true], minimum: 1, pattern: '^a+$' },
  }
  const all: [OfferKind, object][] = [
    ['tool', tool()],
    [
      'tool',
      tool({ title: '🛠️ A', description: 'b\n', icons, execution: { taskSupport: 'optional' }, _meta: {}, odd: 1 }),
    ],
    ['tool', tool({ annotations: { title: 'A', readOnlyHint: true, odd: 'x' } })],
    ['tool', output({ properties, required: ['list'], $defs: { 'a/b': { type: 'object' } } })],
    ['prompt', { name: 'p', arguments: [{ name: 'x', required: true }] }],
    ['resource', resource({ size: 5, mimeType: 'text/plain', annotations })],
    ['resource_template', { uriTemplate: 'file:///{a}', name: 'Eine Datei', annotations }],
  ]
  for (const [kind, offer] of all) expect([offer, shapeFault(kind, offer)]).toEqual([offer, null])
})

test('names what would make callers refuse the whole list', () => {
  const misfits: [OfferKind, object, string][] = [
    ['tool', { name: 'a' }, 'inputSchema must be an object'],
    ['tool', tool({ inputSchema: { type: 'array' } }), 'inputSchema.type must be one of object'],
    [
      'tool',
      tool({ inputSchema: { type: 'object', properties: { a: 5 } } }),
      'inputSchema.properties.a must be an object',
    ],
    ['tool', tool({ description: 5 }), 'description must be a string'],
    ['tool', tool({ annotations: 5 }), 'annotations must be an object'],
    ['tool', tool({ icons: [{}] }), 'icons.0.src must be a string'],
    [
      'tool',
      tool({ execution: { taskSupport: 'evil' } }),
      'execution.taskSupport must be one of required, optional, forbidden',
    ],
    ['tool', tool({ _meta: 'x' }), '_meta must be an object'],
    [
      'tool',
      output({ properties: { a: { type: 'evil' } } }),
      `outputSchema.properties.a.type must be one of ${'array, boolean, integer, null, number, object, string'}`,
    ],
    [
      'tool',
      output({ properties: { a: { pattern: '(' } } }),
      'outputSchema.properties.a.pattern must be a regular expression',
    ],
    ['tool', output({ items: [{ enum: [] }] }), 'outputSchema.items.0.enum must be a list with something in it'],
    ['tool', output({ not: { $ref: '#/none' } }), 'outputSchema refers to what it does not have'],
    ['tool', output({ not: { $ref: 'https://example.com/s' } }), 'outputSchema refers to what it does not have'],
    ['tool', tool({ name: 'pay\u202edaer' }), 'name has characters that cannot be seen'],
    ['tool', tool({ name: 'read\u200b' }), 'name has characters that cannot be seen'],
    ['tool', tool({ title: 'read\u2066' }), 'title has characters that cannot be seen'],
    ['prompt', { name: 'p', arguments: 'x' }, 'arguments must be a list'],
    ['prompt', { name: 'p', arguments: [{}] }, 'arguments.0.name must be a string'],
    ['resource', resource({ size: 'big' }), 'size must be a number'],
    ['resource', resource({ name: undefined }), 'name must be a string'],
    ['resource', resource({ annotations: { audience: 'all' } }), 'annotations.audience must be a list'],
    ['resource', resource({ annotations: { priority: 2 } }), 'annotations.priority must be between 0 and 1'],
    ['resource', resource({ annotations: { lastModified: 'now' } }), 'annotations.lastModified must be a time'],
    ['resource_template', { name: 'a' }, 'uriTemplate must be a string'],
  ]
  for (const [kind, offer, why] of misfits) expect(shapeFault(kind, offer)).toBe(why)
})

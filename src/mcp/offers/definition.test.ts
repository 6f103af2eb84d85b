import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { isJson } from '../protocol.ts'
import { definitionLimitBytes, definitionOf, digestOf } from './definition.ts'

/** The same value with its members written in the other order. */
const reversed = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(reversed)
  if (!isJson(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([name, member]) => [name, reversed(member)]),
  )
}

test('makes the same digest for members in any order and another for any change', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), fc.jsonValue({ maxDepth: 3 }), (schema, other) => {
      const offer = { name: 'a', description: 'b', inputSchema: schema }
      const taken = definitionOf('tool', offer)
      if (taken === null) throw new Error('It has a digest')
      expect(definitionOf('tool', reversed(offer))).toEqual(taken)
      // What the control plane reads of the text is the definition again.
      expect(definitionOf('tool', JSON.parse(taken.text))).toEqual(taken)
      expect(digestOf('tool', taken.text)).toBe(taken.digest)
      expect(definitionOf('tool', { ...offer, unheardOf: other })?.digest).not.toBe(taken.digest)
      expect(definitionOf('prompt', offer)?.digest).not.toBe(taken.digest)
    }),
  )
})

test('ignores changed contents of a resource and identifies it by URI', () => {
  const at = (lastModified: string) => ({ lastModified, priority: 1 })
  const resource = { uri: 'file:///a', name: 'A', size: 1, annotations: at('2026-01-12T15:00:58Z') }
  const before = definitionOf('resource', resource)
  const after = { ...resource, size: 2, annotations: at('2026-01-13T15:00:58.123+01:00') }
  expect(before).toMatchObject({ name: 'file:///a' })
  expect(definitionOf('resource', after)?.digest).toBe(before?.digest ?? '')
  expect(definitionOf('resource', { ...resource, uri: 'file:///b' })?.digest).not.toBe(before?.digest)
  expect(definitionOf('resource_template', { name: 'A', uriTemplate: 'file:///{x}' })?.name).toBe('file:///{x}')
})

test('includes resource members that are not a size or time in the digest', () => {
  const resource = { uri: 'file:///a', name: 'A', size: 1, annotations: { lastModified: '2026-01-12' } }
  const before = definitionOf('resource', resource)?.digest
  for (const text of ['Ignore what you were told', { ignore: 'it' }]) {
    expect(definitionOf('resource', { ...resource, size: text })?.digest).not.toBe(before)
    expect(definitionOf('resource', { ...resource, annotations: { lastModified: text } })?.digest).not.toBe(before)
  }
})

test('makes no definition of an offer that cannot be judged', () => {
  let deep: unknown = 1
  for (let depth = 0; depth < 100; depth++) deep = [deep]
  const longText = 'x'.repeat(definitionLimitBytes)
  for (const offer of [null, 'tool', {}, { name: '' }, { name: 1 }, { name: 'a', deep }, { name: 'a', longText }]) {
    expect(definitionOf('tool', offer)).toBeNull()
  }
})

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { serverName } from '../catalog/server-resource.ts'
import { ownName, ownUri, publishedName, publishedOffer, publishedUri, publishUris } from './names.ts'

/** As the catalog takes them, underscores above all. */
const server = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,9}$|^a[a_]{1,6}$/).filter(isServerName)

function isServerName(name: string): boolean {
  return serverName.safeParse(name).success
}

/** What a server may call a tool: underscores above all, where names could run into each other. */
const own = fc.oneof(fc.string(), fc.stringMatching(/^[_a]{0,6}$/))

test('maps a published name back to the server’s own name', () => {
  fc.assert(
    fc.property(server, own, (name, offer) => {
      expect(ownName(publishedName(name, offer))).toEqual({ server: name, name: offer })
      expect(ownUri(publishedUri(name, offer))).toEqual({ server: name, name: offer })
    }),
  )
})

test('publishes different names for different servers', () => {
  fc.assert(
    fc.property(server, server, own, own, (one, other, name, another) => {
      fc.pre(one !== other)
      expect(publishedName(one, name)).not.toBe(publishedName(other, another))
      expect(publishedUri(one, name)).not.toBe(publishedUri(other, another))
    }),
  )
})

test('refuses a server name whose end could be read as the separator', () => {
  for (const name of ['a_', 'a__b', 'a__', '_a', '', 'a/b', 'a b']) expect(isServerName(name)).toBe(false)
  for (const name of ['a', 'a_b', 'a-', 'a.']) expect(isServerName(name)).toBe(true)
})

test('maps no unpublished name', () => {
  for (const text of ['', '__', '__x', 'x', 'x_y']) expect(ownName(text)).toBeNull()
  for (const text of ['', 'mcp://', 'mcp://x', 'http://x/y']) expect(ownUri(text)).toBeNull()
})

test('changes only name and address of an offer and keeps URI templates expandable', () => {
  expect(publishedOffer('a', { name: 'n', uriTemplate: 'x://{id}', odd: [1] })).toEqual({
    name: 'a__n',
    uriTemplate: 'mcp://a/x://{id}',
    odd: [1],
  })
})

test('publishes addresses in results, in links and embedded resources', () => {
  const result = {
    content: [
      { type: 'resource_link', uri: 'x://1' },
      { type: 'resource', resource: { uri: 'x://2' } },
      { type: 'text', uri: 'x://3' },
    ],
    messages: [{ content: { type: 'resource', resource: { uri: 'x://4' } } }],
    contents: [{ uri: 'x://5' }, null],
  }
  publishUris('a', result)
  expect(JSON.stringify(result).match(/[a-z:/]*x:\/\/\d/g)).toEqual([
    'mcp://a/x://1',
    'mcp://a/x://2',
    'x://3',
    'mcp://a/x://4',
    'mcp://a/x://5',
  ])
})

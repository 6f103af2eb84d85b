import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { ownName, ownUri, publishedName, publishedOffer, publishedUri, publishUris } from './names.ts'

/** As the catalog takes them: no two underscores in a row, none at the end. */
const server = fc
  .stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,20}$/)
  .filter((name) => !name.includes('__') && !name.endsWith('_'))

test('what is published is found again, whatever the server calls it', () => {
  fc.assert(
    fc.property(server, fc.string(), (name, own) => {
      expect(ownName(publishedName(name, own))).toEqual({ server: name, name: own })
      expect(ownUri(publishedUri(name, own))).toEqual({ server: name, name: own })
    }),
  )
})

test('no two servers publish the same name', () => {
  fc.assert(
    fc.property(server, server, fc.string(), fc.string(), (one, other, name, another) => {
      fc.pre(one !== other)
      expect(publishedName(one, name)).not.toBe(publishedName(other, another))
    }),
  )
})

test('what is no published name is none', () => {
  for (const text of ['', '__', '__x', 'x', 'x_y']) expect(ownName(text)).toBeNull()
  for (const text of ['', 'mcp://', 'mcp://x', 'http://x/y']) expect(ownUri(text)).toBeNull()
})

test('of an offer only name and address change; a template is filled in as before', () => {
  expect(publishedOffer('a', { name: 'n', uriTemplate: 'x://{id}', odd: [1] })).toEqual({
    name: 'a__n',
    uriTemplate: 'mcp://a/x://{id}',
    odd: [1],
  })
})

test('addresses within results are published, links and embedded resources alike', () => {
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

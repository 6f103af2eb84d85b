import { expect, test } from 'bun:test'
import { cardCatalog, serverCard } from './server-card.ts'

test.each([
  ['https://gateway.example.com', 'com.example.gateway/gatehouse', 'urn:air:gateway.example.com:mcp:gatehouse'],
  ['http://127.0.0.1:7080', '127.0.0.1/gatehouse', 'urn:air:127.0.0.1:mcp:gatehouse'],
  ['http://[::1]:7080', '--1/gatehouse', 'urn:air:--1:mcp:gatehouse'],
  ['http://localhost:7080', 'localhost/gatehouse', 'urn:air:localhost:mcp:gatehouse'],
])('names the surface of %s by its host', (url, name, identifier) => {
  const card = serverCard(url)
  expect(card.name).toBe(name)
  expect(card.name).toMatch(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/)
  expect(card.description.length).toBeLessThanOrEqual(100)
  expect(card.remotes[0]).toMatchObject({ type: 'streamable-http', url: `${url}/mcp` })
  expect(cardCatalog(url).entries).toEqual([
    { identifier, type: 'application/mcp-server-card+json', url: `${url}/mcp/server-card` },
  ])
})

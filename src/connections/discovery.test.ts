/** What documents of an MCP server can try, and how an authorization server is found. */
import { expect, test } from 'bun:test'
import { discover } from './discovery.ts'
import type { PersonalServer } from './personal-server.ts'
import { upstreamFetch } from './upstream-fetch.ts'

const url = 'https://mcp.example.com/mcp'
const issuer = 'https://login.example.com'
const wellKnown = 'https://mcp.example.com/.well-known/oauth-protected-resource'
const metadata = {
  issuer,
  authorization_endpoint: `${issuer}/authorize`,
  token_endpoint: `${issuer}/token`,
  code_challenge_methods_supported: ['S256'],
}

type Documents = Record<string, unknown>
type Answers = Record<string, (() => Response) | undefined>

interface Tried {
  server?: Partial<PersonalServer>
  documents?: Documents
  answers?: Answers
  addresses?: Record<string, string[]>
}

async function tried({ server = {}, documents = {}, answers = {}, addresses = {} }: Tried) {
  const calls: string[] = []
  const personal: PersonalServer = { id: 'one', name: 'one', url, personal: {}, ...server }
  const fetch = upstreamFetch(
    {
      async fetch(address, { redirect }) {
        calls.push(address)
        expect(redirect).toBe('manual')
        const answer = answers[address]
        if (answer !== undefined) return answer()
        const document = documents[address]
        return document === undefined ? new Response(null, { status: 404 }) : Response.json(document)
      },
      resolve: async (host) => addresses[host] ?? ['93.184.216.34'],
    },
    personal,
  )
  const found = await discover(personal, fetch).catch((error: unknown) => String(error))
  return { found, calls }
}

const resource = { resource: url, authorization_servers: [issuer], scopes_supported: ['read'] }
const good: Documents = {
  [`${wellKnown}/mcp`]: resource,
  [`${issuer}/.well-known/oauth-authorization-server`]: metadata,
}
const challenge = (parameters: string) => () =>
  new Response(null, { status: 401, headers: { 'www-authenticate': `Bearer ${parameters}` } })

test('finds the authorization server at the well-known addresses, or where the challenge says', async () => {
  const plain = await tried({ documents: good })
  expect(plain.found).toEqual({ authorizationServer: metadata, resource: url, scope: 'read' })
  const elsewhere = 'https://mcp.example.com/about'
  const told = await tried({
    documents: { ...good, [elsewhere]: { ...resource, resource: 'https://mcp.example.com' } },
    answers: { [url]: challenge(`error="invalid_token", scope="read write", resource_metadata="${elsewhere}"`) },
  })
  expect(told.found).toMatchObject({ resource: 'https://mcp.example.com', scope: 'read write' })
  expect(told.calls).not.toContain(`${wellKnown}/mcp`)
})

test('finds OpenID Connect metadata of an issuer with a path, and takes a server without metadata for its own', async () => {
  const realm = 'https://login.example.com/realms/acme'
  const byPath = await tried({
    documents: {
      [`${wellKnown}/mcp`]: { ...resource, authorization_servers: [realm] },
      [`${realm}/.well-known/openid-configuration`]: { ...metadata, issuer: realm },
    },
  })
  expect(byPath.found).toMatchObject({ authorizationServer: { issuer: realm } })
  const own = 'https://mcp.example.com'
  const itself = await tried({
    documents: { [`${own}/.well-known/oauth-authorization-server`]: { ...metadata, issuer: own } },
  })
  expect(itself.found).toMatchObject({ authorizationServer: { issuer: own }, resource: url, scope: null })
})

test.each([
  ['http://login.example.com', {}],
  ['https://169.254.169.254', {}],
  ['https://127.0.0.1:7070', {}],
  ['https://[fd00::1]', {}],
  ['https://inside.example.com', { 'inside.example.com': ['10.1.2.3'] }],
  ['https://both.example.com', { 'both.example.com': ['93.184.216.34', '127.0.0.1'] }],
])('calls no authorization server inside or without TLS that the server names: %s', async (named, addresses) => {
  const { found, calls } = await tried({
    documents: { [`${wellKnown}/mcp`]: { ...resource, authorization_servers: [named] } },
    addresses,
  })
  expect(found).toContain('is not outside over https')
  expect(calls.filter((address) => address.startsWith(named))).toEqual([])
})

test('calls no metadata inside that the challenge names, and follows no redirect', async () => {
  const inside = await tried({
    documents: good,
    answers: { [url]: challenge('resource_metadata="http://169.254.169.254/latest/meta-data"') },
  })
  expect(inside.found).toContain('is not outside over https')
  const redirect = () => new Response(null, { status: 302, headers: { location: 'http://169.254.169.254/' } })
  const { found, calls } = await tried({ documents: good, answers: { [`${wellKnown}/mcp`]: redirect } })
  expect(found).toContain('no metadata of an authorization server')
  expect(calls.join()).not.toContain('169.254')
})

test('reaches a server and an authorization server inside that an operator wrote down', async () => {
  const [server, login] = ['http://10.0.0.5:8000/mcp', 'http://10.0.0.6:8080']
  const { found } = await tried({
    server: { url: server, personal: { issuer: login } },
    documents: {
      'http://10.0.0.5:8000/.well-known/oauth-protected-resource/mcp': {
        resource: server,
        authorization_servers: [`${login}/`],
      },
      [`${login}/.well-known/oauth-authorization-server`]: {
        ...metadata,
        issuer: login,
        authorization_endpoint: `${login}/authorize`,
        code_challenge_methods_supported: undefined,
      },
    },
  })
  expect(found).toMatchObject({ authorizationServer: { issuer: login } })
})

const refusals: [string, Tried, string][] = [
  [
    'metadata of another resource',
    { documents: { ...good, [`${wellKnown}/mcp`]: { ...resource, resource: 'https://bank.example.com/api' } } },
    'about another resource',
  ],
  [
    'metadata of a resource beside it',
    { documents: { ...good, [`${wellKnown}/mcp`]: { ...resource, resource: 'https://mcp.example.com/mc' } } },
    'about another resource',
  ],
  [
    'an issuer that calls itself otherwise',
    {
      documents: {
        ...good,
        [`${issuer}/.well-known/oauth-authorization-server`]: { ...metadata, issuer: 'https://bank.example.com' },
      },
    },
    'calls itself by another name',
  ],
  [
    'an issuer other than the record’s',
    { documents: good, server: { personal: { issuer: 'https://other.example.com' } } },
    'names another authorization server than its record does',
  ],
  [
    'an authorization server without PKCE',
    {
      documents: {
        ...good,
        [`${issuer}/.well-known/oauth-authorization-server`]: {
          ...metadata,
          code_challenge_methods_supported: ['plain'],
        },
      },
    },
    'PKCE',
  ],
  [
    'a page that is none',
    {
      documents: {
        ...good,
        [`${issuer}/.well-known/oauth-authorization-server`]: {
          ...metadata,
          authorization_endpoint: 'javascript:alert(document.cookie)',
        },
      },
    },
    'not of its form',
  ],
  [
    'a page without TLS',
    {
      documents: {
        ...good,
        [`${issuer}/.well-known/oauth-authorization-server`]: {
          ...metadata,
          authorization_endpoint: 'http://login.example.com/authorize',
        },
      },
    },
    'not at https',
  ],
  [
    'a document that never ends',
    { documents: good, answers: { [`${wellKnown}/mcp`]: () => new Response('x'.repeat(200_000)) } },
    'larger than',
  ],
]
test.each(refusals)('refuses %s', async (_what, given, reason) => {
  expect((await tried(given)).found).toContain(reason)
})

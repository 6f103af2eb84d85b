import { afterAll, beforeAll, expect, test } from 'bun:test'
import { longestKeySet, readKeys, usableKeys } from './issuer-keys.ts'
import { makeKey, type SigningKey } from './testing/issuer.ts'

let key: SigningKey
let answer: (path: string) => Response | Promise<Response> = () => Response.json({})
const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: (request) => answer(new URL(request.url).pathname) })
const origin = server.url.origin

beforeAll(async () => {
  key = await makeKey('one')
})
afterAll(() => server.stop(true))

const read = (jwksUrl: string | null = null) => readKeys(fetch, { issuer: origin, jwksUrl }, (url) => url)

test('reads the keys where the discovery document of the issuer says', async () => {
  answer = (path) =>
    path === '/keys'
      ? Response.json({ keys: [key.jwk] })
      : Response.json({ issuer: origin, jwks_uri: `${origin}/keys` })
  expect((await read()).keys.map(({ kid }) => kid)).toEqual(['one'])
  expect((await read(`${origin}/keys`)).keys).toHaveLength(1)
})

test('refuses a discovery document of another issuer, and an address of keys that may not be called', async () => {
  answer = () => Response.json({ issuer: `${origin}/other`, jwks_uri: `${origin}/keys` })
  await expect(read()).rejects.toThrow('another issuer')
  answer = () => Response.json({ issuer: origin, jwks_uri: 'http://169.254.169.254/keys' })
  const refuse = (): string => {
    throw new Error('not allowed')
  }
  await expect(readKeys(fetch, { issuer: origin, jwksUrl: null }, refuse)).rejects.toThrow('not allowed')
})

test('refuses redirects, errors, what is no JSON, and what is too long', async () => {
  const url = `${origin}/keys`
  answer = (path) => (path === '/keys' ? Response.redirect(`${origin}/elsewhere`) : Response.json({ keys: [key.jwk] }))
  await expect(read(url)).rejects.toThrow('could not be read')
  answer = () => new Response('no', { status: 500 })
  await expect(read(url)).rejects.toThrow('status 500')
  answer = () => new Response('<html>')
  await expect(read(url)).rejects.toThrow('no JSON')
  answer = () => new Response(' '.repeat(10_000_000))
  await expect(read(url)).rejects.toThrow(`longer than ${longestKeySet} bytes`)
})

test('gives up on an issuer that begins its answer and hangs', async () => {
  answer = () =>
    new Response(
      new ReadableStream({
        start: (controller) => controller.enqueue(new TextEncoder().encode('{')),
      }),
    )
  const jwksUrl = `${origin}/keys`
  await expect(readKeys(fetch, { issuer: origin, jwksUrl }, (url) => url, 50)).rejects.toThrow('in time')
})

test('keeps only public keys that can verify, in one order', async () => {
  const second = await makeKey('two', 'ES256')
  const others = [
    { kty: 'oct', k: 'c2VjcmV0', kid: 'shared' },
    { ...key.jwk, use: 'enc', kid: 'encrypts' },
    { kty: 'RSA', n: 'short', e: 'AQAB', kid: 'weak' },
    { kty: 'RSA', n: 'a'.repeat(20_000), e: 'AQAB', kid: 'huge' },
    'text',
    null,
  ]
  const one = usableKeys({ keys: [...others, key.jwk, second.jwk] }, 'keys')
  expect(one.keys.map(({ kid }) => kid).toSorted()).toEqual(['one', 'two'])
  expect(usableKeys({ keys: [second.jwk, key.jwk] }, 'keys')).toEqual(one)
  expect(() => usableKeys({ keys: others }, 'keys')).toThrow('no key that can be used')
  expect(() => usableKeys([key.jwk], 'keys')).toThrow('no JWK Set')
})

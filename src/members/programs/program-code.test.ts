import { expect, test } from 'bun:test'
import { challengeOf, programQuery } from './program-code.ts'

const good = {
  client_id: 'gatehouse-cli',
  redirect_uri: 'http://127.0.0.1:51234/callback',
  code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
  code_challenge_method: 'S256',
}
const accepts = (changes: Record<string, unknown>) => programQuery.safeParse({ ...good, ...changes }).success

test('computes the challenge of a verifier as in RFC 7636', () => {
  // RFC 7636 appendix B
  expect(challengeOf('dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk')).toBe(good.code_challenge)
})

test('accepts a redirect to this host with a port', () => {
  const allowed = [
    'http://127.0.0.1:51234/callback',
    'http://localhost:1/',
    'http://[::1]:65535/a?b=c',
    'http://127.0.0.1:8080',
    'urn:ietf:wg:oauth:2.0:oob',
  ]
  expect(allowed.filter((redirect_uri) => !accepts({ redirect_uri }))).toEqual([])
})

test('refuses a redirect that leads, or might lead, elsewhere', () => {
  const refused = [
    '',
    'https://127.0.0.1:51234/',
    'http://127.0.0.1/',
    'http://127.0.0.1:0/',
    'http://127.0.0.1:99999/',
    'http://127.0.0.1:80@evil.example/',
    'http://evil.example:80/',
    'http://localhost.evil.example:80/',
    'http://127.0.0.1.evil.example:80/',
    'http://user:pass@127.0.0.1:80/',
    'http://127.1:80/',
    'http://2130706433:80/',
    'http://0.0.0.0:80/',
    'http://[::ffff:127.0.0.1]:80/',
    'http://127.0.0.1:80/#fragment',
    'http://127.0.0.1:80\\@evil.example/',
    'http://127.0.0.1:80/\r\nSet-Cookie: a=b',
    ' http://127.0.0.1:80/',
    'HTTP://127.0.0.1:80/',
    'http://127.0.0.1:80/?code=planted',
    'http://127.0.0.1:80/?state=planted',
    'javascript:alert(1)',
    'urn:ietf:wg:oauth:2.0:oob:auto',
    `http://127.0.0.1:80/${'a'.repeat(600)}`,
  ]
  expect(refused.filter((redirect_uri) => accepts({ redirect_uri }))).toEqual([])
})

test('accepts PKCE with S256 and a well-formed challenge, never plain', () => {
  expect(accepts({ code_challenge_method: 'plain' })).toBe(false)
  expect(accepts({ code_challenge_method: undefined })).toBe(false)
  expect(accepts({ code_challenge: undefined })).toBe(false)
  expect(accepts({ code_challenge: `${good.code_challenge}=` })).toBe(false)
  expect(accepts({ code_challenge: 'short' })).toBe(false)
})

test('accepts a program name of plain characters, and no unknown parameter', () => {
  expect(accepts({ client_id: '<b>bank</b>' })).toBe(false)
  expect(accepts({ client_id: '' })).toBe(false)
  expect(accepts({ scope: 'all' })).toBe(false)
})

import { expect, test } from 'bun:test'
import { verify } from 'node:crypto'
import { assertionOf, readServiceAccount } from './service-account.ts'
import { testPublicKey, testServiceKey } from './testing/service-key.ts'

const tokenUrl = 'https://oauth2.googleapis.com/token'

test('signs a JWT for the token endpoint with RS256', () => {
  const assertion = assertionOf(readServiceAccount(testServiceKey(tokenUrl)), 1_700_000_000_500)
  const [header = '', claims = '', signature = ''] = assertion.split('.')
  const decoded = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString())
  expect(decoded(header)).toEqual({ alg: 'RS256', typ: 'JWT', kid: 'key-1' })
  expect(decoded(claims)).toEqual({
    iss: 'gateway@my-project.iam.gserviceaccount.com',
    scope: 'https://www.googleapis.com/auth/cloud-platform',
    aud: tokenUrl,
    iat: 1_700_000_000,
    exp: 1_700_003_600,
  })
  const signed = Buffer.from(`${header}.${claims}`)
  expect(verify('RSA-SHA256', signed, testPublicKey, Buffer.from(signature, 'base64url'))).toBe(true)
})

test('says what is wrong with a key and repeats nothing of it', () => {
  for (const [text, message] of [
    ['AIza-not-json', 'no JSON key of a service account'],
    ['{"type":"authorized_user","client_email":"secret@x"}', 'type is missing or wrong'],
    [testServiceKey(tokenUrl, { client_email: undefined }), 'client_email'],
    [testServiceKey(tokenUrl, { private_key: 'secret-pem' }), 'private_key is no RSA key'],
    [testServiceKey('http://internal.example/secret'), 'token_uri must begin with https://'],
    [testServiceKey('nonsense'), 'token_uri'],
  ] as const) {
    expect(() => readServiceAccount(text)).toThrow(message)
    expect(() => readServiceAccount(text)).not.toThrow('secret')
  }
})

test('takes a token endpoint without TLS on this host only', () => {
  expect(readServiceAccount(testServiceKey('http://127.0.0.1:9/token')).tokenUrl).toBe('http://127.0.0.1:9/token')
})

import { beforeAll, describe, expect, test } from 'bun:test'
import { SignJWT, UnsecuredJWT } from 'jose'
import { Failure } from '../failure.ts'
import { identityOf, issuerName, makeKey, type SigningKey, signed } from './testing/issuer.ts'
import { checkJwt, compileClaims, longestJwt, looksLikeJwt, requireStanding } from './workload-identity.ts'

const now = Date.parse('2026-03-01T12:00:00Z')
const seconds = now / 1000
let key: SigningKey
let other: SigningKey

beforeAll(async () => {
  key = await makeKey('one')
  other = await makeKey('two')
})

const check = (jwt: string, ...identities: readonly ReturnType<typeof identityOf>[]) =>
  checkJwt(jwt, identities.length === 0 ? [identityOf([key])] : identities, now)

/** Why a JWT is refused; fails for one that is accepted. */
async function refusal(jwt: string, ...identities: readonly ReturnType<typeof identityOf>[]): Promise<string> {
  const thrown = await check(jwt, ...identities).then(
    () => null,
    (error: unknown) => error,
  )
  if (!(thrown instanceof Failure)) throw new Error('The JWT was accepted')
  expect(thrown.code).toBe('invalid_api_token')
  expect(thrown.message).not.toContain(jwt.slice(-20))
  return thrown.message
}

test('accepts a JWT of a known issuer for its audience, whatever accepted algorithm signs it', async () => {
  for (const alg of ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA']) {
    const made = await makeKey(alg, alg)
    const caller = await check(await signed(made, now, { jti: 'a' }), identityOf([made]))
    expect(caller).toMatchObject({ subject: 'app', jwtId: 'a', expiresAt: now + 600_000, metadata: null })
  }
})

test('notes the attributed claims, and leaves out lists and objects', async () => {
  const identity = identityOf([key], { attribution: { repo: 'repository', run: 'run', groups: 'groups' } })
  const jwt = await signed(key, now, { repository: 'acme/app', run: 7, groups: ['a'] })
  expect((await check(jwt, identity)).metadata).toEqual({ repo: 'acme/app', run: '7' })
})

test('uses the identity whose audience and condition fit when several name the issuer', async () => {
  const first = identityOf([key], { id: 'first', audience: 'elsewhere' })
  const second = identityOf([key], { id: 'second', condition: compileClaims('claims.repository == "acme/app"') })
  const jwt = await signed(key, now, { repository: 'acme/app' })
  expect((await check(jwt, first, second)).identity.id).toBe('second')
  expect(await refusal(await signed(key, now, { repository: 'acme/other' }), first, second)).toContain('condition')
})

describe('refuses', () => {
  test('an unknown issuer, also one that is a part of a known one', async () => {
    for (const iss of ['https://evil.example', `${issuerName}/`, issuerName.slice(0, -1), '']) {
      expect(await refusal(await signed(key, now, { iss }))).toContain('issuer')
    }
  })

  test('a JWT of one issuer that is signed with the key of another', async () => {
    const mixed = [identityOf([key]), identityOf([other], { id: 'b', issuer: 'https://other.example' })]
    expect(await refusal(await signed(other, now), ...mixed)).toContain('known keys')
  })

  test('alg none, with and without a signature', async () => {
    const claims = { iss: issuerName, aud: 'gatehouse', sub: 'app', iat: seconds, exp: seconds + 60 }
    const unsigned = new UnsecuredJWT(claims).encode()
    expect(await refusal(unsigned)).toContain('The JWT')
    const [, , signature] = (await signed(key, now)).split('.')
    expect(await refusal(`${unsigned}${signature}`)).toContain('The JWT')
  })

  test('an HMAC whose secret is the public key', async () => {
    const secret = new TextEncoder().encode(JSON.stringify(key.jwk))
    const claims = { iss: issuerName, aud: 'gatehouse', sub: 'app', iat: seconds, exp: seconds + 60 }
    for (const alg of ['HS256', 'HS512']) {
      const jwt = await new SignJWT(claims).setProtectedHeader({ alg, kid: key.kid }).sign(secret)
      expect(await refusal(jwt)).toContain('algorithm')
    }
  })

  test('a key that the header brings, or tells to fetch', async () => {
    const claims = { iss: issuerName, aud: 'gatehouse', sub: 'app', iat: seconds, exp: seconds + 60 }
    const { alg: _alg, use: _use, ...jwk } = other.jwk
    const headers = [
      { alg: 'RS256', kid: 'one', jwk },
      { alg: 'RS256', kid: '../../etc/passwd', jku: 'http://127.0.0.1:1/keys' },
      { alg: 'RS256', kid: "' or 1=1 --", x5u: 'http://127.0.0.1:1/keys' },
    ]
    for (const header of headers) {
      const jwt = await new SignJWT(claims).setProtectedHeader(header).sign(other.privateKey)
      expect(await refusal(jwt)).toContain('The JWT')
    }
  })

  test('another audience, also one that only begins like it', async () => {
    for (const aud of ['gatehouse-staging', 'gate', ['a', 'b'], '']) {
      expect(await refusal(await signed(key, now, { aud }))).toContain('aud')
    }
  })

  test('a JWT before its time, after its time, without a time, or valid for too long', async () => {
    expect(await refusal(await signed(key, now, { exp: seconds - 31 }))).toContain('expired')
    expect(await refusal(await signed(key, now, { exp: seconds - 10 }))).toContain('expired')
    expect(await refusal(await signed(key, now, { nbf: seconds + 60 }))).toContain('nbf')
    expect(await refusal(await signed(key, now, { iat: seconds - 86_000, exp: seconds + 1000 }))).toContain('longer')
    const endless = await new SignJWT({ iss: issuerName, aud: 'gatehouse', sub: 'app' })
      .setProtectedHeader({ alg: 'RS256', kid: 'one' })
      .sign(key.privateKey)
    expect(await refusal(endless)).toContain('has no claim')
  })

  test('a changed claim, a cut JWT, and what is no JWT', async () => {
    const [head = '', body = '', signature = ''] = (await signed(key, now)).split('.')
    const claims = JSON.parse(Buffer.from(body, 'base64url').toString())
    const changed = Buffer.from(JSON.stringify({ ...claims, sub: 'admin' })).toString('base64url')
    expect(await refusal(`${head}.${changed}.${signature}`)).toContain('signature')
    expect(await refusal(`${head}.${body}.`)).toContain('The JWT')
    expect(await refusal('eyJ.eyJ.x')).toContain('cannot be read')
    expect(await refusal(`eyJ.${'a'.repeat(longestJwt)}.x`)).toContain('longer than')
  })

  test('a revoked subject, a revoked id, and no other', async () => {
    const identity = identityOf([key], { revokedSubjects: new Set(['gone']), revokedIds: new Set(['stolen']) })
    expect(await refusal(await signed(key, now, { sub: 'gone' }), identity)).toContain('revoked')
    expect(await refusal(await signed(key, now, { jti: 'stolen' }), identity)).toContain('revoked')
    expect((await check(await signed(key, now, { sub: 'stays', jti: 'mine' }), identity)).subject).toBe('stays')
  })

  test('a checked caller once the JWT ends, by the time of its exp without tolerance', async () => {
    const caller = await check(await signed(key, now))
    expect(() => requireStanding(caller, caller.identity, now + 599_999)).not.toThrow()
    expect(() => requireStanding(caller, caller.identity, now + 600_000)).toThrow('expired')
  })
})

test('tells a JWT from a Gatehouse secret and from other keys', () => {
  expect(['gth_abc', 'sk-abc', 'eyJhbGciOi', 'a.b.c'].map(looksLikeJwt)).toEqual([false, false, false, false])
  expect(looksLikeJwt('eyJhbGciOiJub25lIn0.eyJhIjoxfQ.')).toBe(true)
})

/** An issuer of JWTs for tests: its keys, and what it signs with them. */
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import { usableKeys } from '../issuer-keys.ts'
import type { WorkloadIdentity } from '../workload-identity.ts'

export const issuerName = 'https://issuer.example'
export const audience = 'gatehouse'

export interface SigningKey {
  readonly kid: string
  readonly alg: string
  readonly privateKey: CryptoKey
  readonly jwk: Record<string, unknown>
}

export async function makeKey(kid: string, alg = 'RS256'): Promise<SigningKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } }
}

/** A JWT of the issuer that is accepted, but for the claims that are given. */
export function signed(key: SigningKey, now: number, claims: JWTPayload = {}): Promise<string> {
  const seconds = Math.floor(now / 1000)
  const usual = { iss: issuerName, aud: audience, sub: 'app', iat: seconds, exp: seconds + 600 }
  return new SignJWT({ ...usual, ...claims }).setProtectedHeader({ alg: key.alg, kid: key.kid }).sign(key.privateKey)
}

export const identityOf = (keys: readonly SigningKey[], members: Partial<WorkloadIdentity> = {}): WorkloadIdentity => ({
  id: '01990000-0000-7000-8000-00000000aa01',
  name: 'ci',
  issuer: issuerName,
  audience,
  keys: usableKeys({ keys: keys.map(({ jwk }) => jwk) }, 'keys'),
  condition: null,
  attribution: {},
  tokenHash: 'hash',
  longestSeconds: 86_400,
  revokedSubjects: new Set(),
  revokedIds: new Set(),
  ...members,
})

/**
 * A workload identity as gateways decide by it, and the check of a JWT (RFC 7519, RFC 8725) against those there are. A
 * JWT is accepted when its issuer, its audience, its signature, its times and the condition on its claims hold, and
 * neither its subject nor its id was revoked.
 */
import type { JWK, JWTPayload, JWTVerifyGetKey } from 'jose'
import { Failure } from '../failure.ts'
import { type Condition, compileCondition } from '../inspection/condition.ts'
import type { IssuerKey, KeySet } from './issuer-keys.ts'

/** The longest JWT that is read. */
export const longestJwt = 16 * 1024
/** How far the clocks of issuer and gateway may differ, in seconds. */
const clockTolerance = 30
/** RFC 8725 section 3.1: the algorithms are fixed here, and none of them uses a shared secret. */
const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']
const longestMetadata = 512

type Claims = Readonly<Record<string, unknown>>

/** Compiles a condition on the claims of a JWT. Throws `invalid_parameter` for `condition` with the reason. */
export const compileClaims = (expression: string): Condition =>
  compileCondition(expression, { variable: 'claims', param: 'condition' })

export interface WorkloadIdentity {
  readonly id: string
  readonly name: string
  readonly issuer: string
  readonly audience: string
  readonly keys: KeySet
  readonly condition: Condition | null
  /** The claim of each name in the metadata of events. */
  readonly attribution: Readonly<Record<string, string>>
  /** SHA-256 of the secret of the token that its callers act as. */
  readonly tokenHash: string
  /** The longest time from `iat` to `exp` that is accepted. */
  readonly longestSeconds: number
  readonly revokedSubjects: ReadonlySet<string>
  readonly revokedIds: ReadonlySet<string>
}

/** A caller whose JWT was checked. */
export interface WorkloadCaller {
  readonly identity: WorkloadIdentity
  readonly subject: string
  /** `jti`; null without one. */
  readonly jwtId: string | null
  /** Milliseconds since the epoch, without tolerance: a stolen JWT ends with its `exp`. */
  readonly expiresAt: number
  /** Of its claims, for events; null for none. */
  readonly metadata: Readonly<Record<string, string>> | null
  /** The same values, by the names of their claims. */
  readonly claims: Readonly<Record<string, string>> | null
}

type Jose = typeof import('jose')

/** Loaded with the first JWT: most gateways have no workload identity. */
let library: Promise<Jose> | null = null
const loadJose = (): Promise<Jose> => {
  library ??= import('jose')
  return library
}

/** Two texts with a point between, as `eyJ…`: base64url of `{"`. Whether the rest is a JWT is checked later. */
export const looksLikeJwt = (secret: string): boolean => secret.startsWith('eyJ') && secret.split('.').length === 3

/** As the library has it: a member that is absent is not there. */
const jwkOf = ({ kid, alg, use, ...key }: IssuerKey): JWK => ({
  ...key,
  ...(kid !== undefined && { kid }),
  ...(alg !== undefined && { alg }),
  ...(use !== undefined && { use }),
})

const keyFinders = new WeakMap<KeySet, JWTVerifyGetKey>()

function keyFinderOf({ createLocalJWKSet }: Jose, keys: KeySet): JWTVerifyGetKey {
  const known = keyFinders.get(keys)
  if (known !== undefined) return known
  const made = createLocalJWKSet({ keys: keys.keys.map(jwkOf) })
  keyFinders.set(keys, made)
  return made
}

/** Checks a JWT at the time `now`. Throws `invalid_api_token` with a reason that quotes nothing of it. */
export async function checkJwt(
  jwt: string,
  identities: readonly WorkloadIdentity[],
  now: number,
): Promise<WorkloadCaller> {
  if (jwt.length > longestJwt) throw refused(`is longer than ${longestJwt} characters`)
  const jose = await loadJose()
  const issuer = claimedIssuer(jose, jwt)
  const candidates = identities.filter((each) => each.issuer === issuer)
  if (candidates.length === 0) throw refused('comes from an issuer that no workload identity names')
  let refusal = refused('is not accepted')
  for (const identity of candidates) {
    try {
      return await checkAgainst(jose, jwt, identity, now)
    } catch (thrown) {
      if (!(thrown instanceof Failure)) throw thrown
      refusal = thrown
    }
  }
  throw refusal
}

function claimedIssuer({ decodeJwt }: Jose, jwt: string): string | undefined {
  try {
    return decodeJwt(jwt).iss
  } catch (cause) {
    throw refused('cannot be read', cause)
  }
}

async function checkAgainst(jose: Jose, jwt: string, identity: WorkloadIdentity, now: number): Promise<WorkloadCaller> {
  const claims = await verifiedClaims(jose, jwt, identity, now)
  const { sub, jti, exp, iat } = claims
  if (typeof sub !== 'string' || sub === '' || exp === undefined || iat === undefined) throw refused('has no subject')
  if (exp - iat > identity.longestSeconds) {
    throw refused(`is valid for longer than the ${identity.longestSeconds} seconds that its workload identity allows`)
  }
  if (identity.condition !== null && !identity.condition(claims)) {
    throw refused('does not meet the condition of its workload identity')
  }
  const caller = {
    identity,
    subject: sub,
    jwtId: typeof jti === 'string' ? jti : null,
    expiresAt: exp * 1000,
    metadata: metadataOf(identity.attribution, claims),
    claims: metadataOf(byClaim(identity), claims),
  }
  requireStanding(caller, identity, now)
  return caller
}

/** Throws when the caller of a checked JWT may not call any more: `identity` is the record as it is now. */
export function requireStanding(
  { subject, jwtId, expiresAt }: Pick<WorkloadCaller, 'subject' | 'jwtId' | 'expiresAt'>,
  identity: WorkloadIdentity,
  now: number,
): void {
  if (now >= expiresAt) throw refused('has expired')
  const revoked = identity.revokedSubjects.has(subject) || (jwtId !== null && identity.revokedIds.has(jwtId))
  if (revoked) throw refused('has been revoked')
}

async function verifiedClaims(
  jose: Jose,
  jwt: string,
  { keys, issuer, audience }: WorkloadIdentity,
  now: number,
): Promise<JWTPayload> {
  const options = {
    algorithms,
    issuer,
    audience,
    clockTolerance,
    currentDate: new Date(now),
    requiredClaims: ['exp', 'iat', 'sub'],
  }
  try {
    return (await jose.jwtVerify(jwt, keyFinderOf(jose, keys), options)).payload
  } catch (cause) {
    throw refused(reasonOf(jose, cause), cause)
  }
}

function reasonOf({ errors }: Jose, thrown: unknown): string {
  if (thrown instanceof errors.JWTExpired) return 'has expired'
  if (thrown instanceof errors.JWTClaimValidationFailed) {
    return thrown.reason === 'missing'
      ? `has no claim ${thrown.claim}`
      : `has a claim ${thrown.claim} that is not accepted`
  }
  if (thrown instanceof errors.JWKSNoMatchingKey) return "is signed with a key that is none of the issuer's known keys"
  if (thrown instanceof errors.JOSEAlgNotAllowed) return 'is signed with an algorithm that is not accepted'
  if (thrown instanceof errors.JWSSignatureVerificationFailed) return 'has a signature that does not fit'
  return 'cannot be verified'
}

/** Texts, numbers and truth values of claims, cut to what events hold. */
function metadataOf(attribution: WorkloadIdentity['attribution'], claims: Claims): WorkloadCaller['metadata'] {
  const entries = Object.entries(attribution).flatMap(([name, claim]) => {
    const value = claims[claim]
    const said = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    return said ? [[name, String(value).slice(0, longestMetadata).toWellFormed()] as const] : []
  })
  return entries.length === 0 ? null : Object.fromEntries(entries)
}

const byClaim = ({ attribution }: WorkloadIdentity): WorkloadIdentity['attribution'] =>
  Object.fromEntries(Object.values(attribution).map((claim) => [claim, claim]))

const refused = (why: string, cause?: unknown): Failure =>
  new Failure('invalid_api_token', { message: `The JWT ${why}`, cause })

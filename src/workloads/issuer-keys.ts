/**
 * The public keys of an issuer of JWTs: a JWK Set (RFC 7517), given or read from the issuer by OpenID Connect Discovery
 * 1.0 section 4. Only asymmetric public keys are kept, so that no key can be used as the secret of an HMAC.
 */
import { z } from 'zod'
import { Failure } from '../failure.ts'

export const longestKeySet = 64 * 1024
const mostKeys = 50
const readMilliseconds = 5000
/** RSA keys from 2048 bits (RFC 7518 section 3.3) to 8192 bits: the work of one check grows with the length. */
const modulusCharacters = { least: 342, most: 1366 }

const text = z.string().min(1).max(200)
const named = { kid: text.optional(), alg: text.optional(), use: text.optional() }
const coordinate = z.string().min(42).max(100)

/** Other members are dropped: `x5u` and the like are never followed. */
const keySchema = z.discriminatedUnion('kty', [
  z.object({
    kty: z.literal('RSA'),
    n: z.string().min(modulusCharacters.least).max(modulusCharacters.most),
    e: z.string().min(1).max(8),
    ...named,
  }),
  z.object({ kty: z.literal('EC'), crv: z.enum(['P-256', 'P-384', 'P-521']), x: coordinate, y: coordinate, ...named }),
  z.object({ kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: coordinate, ...named }),
])
export type IssuerKey = z.infer<typeof keySchema>

export interface KeySet {
  readonly keys: readonly IssuerKey[]
}

export const keySetSchema = z.object({ keys: z.array(keySchema) })
const anyKeys = z.object({ keys: z.array(z.unknown()).max(1000) })

/** The keys that can be used, sorted. Throws `invalid_parameter` for `param` when there is none. */
export function usableKeys(given: unknown, param: string): KeySet {
  const set = anyKeys.safeParse(given)
  if (!set.success) throw wrongKeys(param, 'is no JWK Set: write {"keys": [...]} (RFC 7517)')
  const keys = set.data.keys.flatMap((each) => {
    const key = keySchema.safeParse(each)
    return key.success && key.data.use !== 'enc' ? [key.data] : []
  })
  if (keys.length === 0) {
    throw wrongKeys(param, 'holds no key that can be used: public keys of RSA (2048 to 8192 bits), EC or Ed25519')
  }
  if (keys.length > mostKeys) throw wrongKeys(param, `holds more than ${mostKeys} keys`)
  return { keys: keys.toSorted((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1)) }
}

const wrongKeys = (param: string, why: string): Failure =>
  new Failure('invalid_parameter', { param, message: `${param} ${why}` })

type Fetch = (url: string, init: RequestInit) => Promise<Response>

/**
 * Reads the keys of an issuer within 5 seconds, unless another time is given. Throws `invalid_parameter` for `issuer`
 * or `jwks_url` with a reason that does not quote the answer.
 */
export async function readKeys(
  fetch: Fetch,
  { issuer, jwksUrl }: { issuer: string; jwksUrl: string | null },
  checkUrl: (url: string) => string,
  milliseconds = readMilliseconds,
): Promise<KeySet> {
  const signal = AbortSignal.timeout(milliseconds)
  if (jwksUrl !== null) return usableKeys(await readJson(fetch, jwksUrl, signal, 'jwks_url'), 'jwks_url')
  const address = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const discovery = z.looseObject({ issuer: z.string(), jwks_uri: z.string() })
  const found = discovery.safeParse(await readJson(fetch, address, signal, 'issuer'))
  if (!found.success) throw unread('issuer', 'its discovery document names no issuer and jwks_uri')
  if (found.data.issuer !== issuer) throw unread('issuer', 'its discovery document names another issuer')
  return usableKeys(await readJson(fetch, checkUrl(found.data.jwks_uri), signal, 'issuer'), 'issuer')
}

async function readJson(fetch: Fetch, url: string, signal: AbortSignal, param: string): Promise<unknown> {
  const body = await readText(fetch, url, signal, param)
  try {
    return JSON.parse(body)
  } catch (cause) {
    throw unread(param, 'the answer is no JSON', cause)
  }
}

async function readText(fetch: Fetch, url: string, signal: AbortSignal, param: string): Promise<string> {
  try {
    const answer = await fetch(url, { signal, redirect: 'error', headers: { accept: 'application/json' } })
    if (!answer.ok) throw unread(param, `the answer has the status ${answer.status}`)
    return await readBounded(answer, param)
  } catch (cause) {
    if (cause instanceof Failure) throw cause
    throw unread(param, signal.aborted ? 'there was no whole answer in time' : 'there was no answer', cause)
  }
}

async function readBounded(answer: Response, param: string): Promise<string> {
  const decoder = new TextDecoder()
  let body = ''
  let length = 0
  for await (const piece of answer.body ?? []) {
    length += piece.length
    if (length > longestKeySet) throw unread(param, `the answer is longer than ${longestKeySet} bytes`)
    body += decoder.decode(piece, { stream: true })
  }
  return body + decoder.decode()
}

const unread = (param: string, why: string, cause?: unknown): Failure =>
  new Failure('invalid_parameter', {
    param,
    message: `The issuer's keys could not be read: ${why}. Give them as keys instead if this host cannot reach it`,
    cause,
  })

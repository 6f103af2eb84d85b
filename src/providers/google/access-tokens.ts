/**
 * Access tokens for Google's APIs, by a service account's key or from the metadata server of the host (Google's
 * "Authenticate workloads to Google APIs").
 *
 * - A token is used for as long as it is valid. When half of its life has passed, the next call has it refreshed in the
 *   background and goes on with the present one. So a provider that is in use never waits for a token.
 * - One refresh runs at a time for each credential. Calls that have no valid token wait for it together, at most ten
 *   seconds. After a failure the next refresh begins no sooner than 15 seconds later; calls without a token fail at once.
 * - While the endpoint is out, hangs or answers rubbish, a valid token stays in use until it expires.
 * - A token that the API refuses with 401 is dropped, if it is older than 15 seconds.
 */
import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import { parseObject } from '../../languages/reading/json-value.ts'
import type { Clock } from '../../lib/clock.ts'
import { callFailure } from '../../lib/http/call-failure.ts'
import { heldBody } from '../held-body.ts'
import type { Fetch } from '../provider.ts'
import { assertionOf, type ServiceAccount } from './service-account.ts'

export interface AccessToken {
  text: string
  /** The project of the host; null for a service account's key, which has its own. */
  project: string | null
}

/** No token could be had. The message holds no secret. */
export class AccessTokenError extends Error {
  override readonly name = 'AccessTokenError'
}

const deadlineMilliseconds = 10_000
const afterFailureMilliseconds = 15_000
/** A token is not used in its last seconds: a request takes its time to arrive. */
const leewaySeconds = 10
/** Google's live for an hour; what an endpoint says beyond a day is not believed. */
const longestSeconds = 86_400
const answerBytes = 64 * 1024
const mostCredentials = 1000

const metadataUrl = 'http://metadata.google.internal/computeMetadata/v1'

const tokenSchema = z.looseObject({
  access_token: z.string().regex(/^[\x21-\x7e]{1,8192}$/),
  expires_in: z.coerce.number().gt(leewaySeconds),
})

interface Held extends AccessToken {
  /** Monotonic instants. */
  obtained: number
  refreshFrom: number
  until: number
}

interface Entry {
  held: Held | null
  refreshing: Promise<void> | null
  /** Why the last refresh failed; no other begins before `retryFrom`. */
  failure: AccessTokenError | null
  retryFrom: number
}

export class AccessTokens {
  readonly #clock: Clock
  readonly #entries = new LRUCache<string, Entry>({ max: mostCredentials })

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * A valid token of the account, or of the host for null. Answers at once while it has one. `signal` ends the waiting
   * of this call, not the refresh. Rejects with `AccessTokenError`.
   */
  of(account: ServiceAccount | null, fetch: Fetch, signal: AbortSignal): AccessToken | Promise<AccessToken> {
    const entry = this.#entryOf(account)
    const now = this.#clock.monotonic()
    if (entry.held !== null && now < entry.held.until) {
      if (now >= entry.held.refreshFrom) this.#refresh(entry, account, fetch)
      return entry.held
    }
    return this.#wait(entry, account, fetch, signal)
  }

  /** Drops a token that the API refused. False if it is too young for another one to be of use. */
  drop(account: ServiceAccount | null, text: string): boolean {
    const entry = this.#entryOf(account)
    if (entry.held?.text !== text) return true
    if (this.#clock.monotonic() - entry.held.obtained < afterFailureMilliseconds) return false
    entry.held = null
    return true
  }

  #entryOf(account: ServiceAccount | null): Entry {
    const key = account === null ? '' : `${account.email} ${account.keyId} ${account.tokenUrl} ${thumbprint(account)}`
    let entry = this.#entries.get(key)
    if (entry === undefined) {
      entry = { held: null, refreshing: null, failure: null, retryFrom: Number.NEGATIVE_INFINITY }
      this.#entries.set(key, entry)
    }
    return entry
  }

  async #wait(entry: Entry, account: ServiceAccount | null, fetch: Fetch, signal: AbortSignal): Promise<AccessToken> {
    this.#refresh(entry, account, fetch)
    if (entry.refreshing !== null) await unlessAborted(entry.refreshing, signal)
    if (entry.held !== null && this.#clock.monotonic() < entry.held.until) return entry.held
    throw entry.failure ?? new AccessTokenError('There is no access token')
  }

  /** Begins a refresh, unless one is running or the last one failed just now. Never rejects. */
  #refresh(entry: Entry, account: ServiceAccount | null, fetch: Fetch): void {
    if (entry.refreshing !== null || this.#clock.monotonic() < entry.retryFrom) return
    entry.refreshing = this.#ask(account, fetch)
      .then(
        (held) => {
          entry.held = held
          entry.failure = null
        },
        (thrown: unknown) => {
          entry.failure = failureOf(thrown)
          entry.retryFrom = this.#clock.monotonic() + afterFailureMilliseconds
        },
      )
      .finally(() => {
        entry.refreshing = null
      })
  }

  async #ask(account: ServiceAccount | null, fetch: Fetch): Promise<Held> {
    const asked = this.#clock.monotonic()
    const signal = AbortSignal.timeout(deadlineMilliseconds)
    const answer =
      account === null ? await fromMetadata('instance/service-accounts/default/token', fetch, signal) : null
    const text = answer ?? (await exchanged(account, this.#clock.now(), fetch, signal))
    const token = tokenSchema.safeParse(parseObject(text))
    if (!token.success) throw new AccessTokenError('The answer of the token endpoint is no access token')
    const life = (Math.min(token.data.expires_in, longestSeconds) - leewaySeconds) * 1000
    const project = account === null ? (await fromMetadata('project/project-id', fetch, signal)).trim() : null
    return {
      text: token.data.access_token,
      project,
      obtained: asked,
      refreshFrom: asked + life / 2,
      until: asked + life,
    }
  }
}

const thumbprints = new WeakMap<ServiceAccount, string>()

/** Tells two keys apart that say the same of themselves. */
function thumbprint(account: ServiceAccount): string {
  let known = thumbprints.get(account)
  if (known === undefined) {
    known = new Bun.CryptoHasher('sha256')
      .update(account.privateKey.export({ type: 'pkcs8', format: 'der' }))
      .digest('base64')
    thumbprints.set(account, known)
  }
  return known
}

/** Exchanges what the key signs for a token (RFC 7523 section 2.1). */
async function exchanged(account: ServiceAccount | null, now: number, fetch: Fetch, signal: AbortSignal) {
  if (account === null) throw new TypeError('There is no key')
  const grant = { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion: assertionOf(account, now) }
  const answer = await fetch(account.tokenUrl, {
    method: 'POST',
    headers: { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(grant).toString(),
    redirect: 'manual',
    signal,
  })
  return await textOf(answer)
}

async function fromMetadata(path: string, fetch: Fetch, signal: AbortSignal): Promise<string> {
  const headers = { 'metadata-flavor': 'Google' }
  const answer = await fetch(`${metadataUrl}/${path}`, { headers, redirect: 'manual', signal })
  // Another server that has the name does not say this.
  if (answer.headers.get('metadata-flavor') === 'Google') return await textOf(answer)
  await answer.body?.cancel()
  throw new AccessTokenError(
    'This host has no metadata server of Google: give the provider the key of a service account',
  )
}

/** The codes of RFC 6749 section 5.2; no other text of the endpoint is repeated. */
const errorCode = /^[a-z_]{1,40}$/

async function textOf(answer: Response): Promise<string> {
  const { text, answer: rest } = await heldBody(answer, answerBytes)
  if (text === null) await rest.body?.cancel()
  if (answer.ok && text !== null) return text
  const error = text === null ? null : parseObject(text)?.error
  const why = typeof error === 'string' && errorCode.test(error) ? ` (${error})` : ''
  throw new AccessTokenError(`The token endpoint of Google answered with status ${answer.status}${why}`)
}

const failureOf = (thrown: unknown): AccessTokenError =>
  thrown instanceof AccessTokenError
    ? thrown
    : new AccessTokenError(
        `The token endpoint of Google could not be asked: ${callFailure(thrown, 'it did not answer in 10 seconds')}`,
      )

/** The work, or the abort of the one who waits for it. */
async function unlessAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  const { promise, reject } = Promise.withResolvers<never>()
  const abort = () => reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  try {
    await Promise.race([work, promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

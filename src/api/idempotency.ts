/** `Idempotency-Key` on a request: claims the key before the handler runs, and keeps the answer after it. */
import { asFailure, Failure } from '../failure.ts'
import { holdsSecret } from '../identity/secret.ts'
import type { Log } from '../lib/log/log.ts'
import { jsonResponse } from './answer.ts'
import type { AnswerStore, KeptAnswer } from './answer-store.ts'
import type { Call } from './call.ts'

/** Claims the key of the request, or returns the answer that was kept for it; undefined where the handler must run. */
export async function beginOnce(answers: AnswerStore, request: Request, call: Call): Promise<Response | undefined> {
  const key = request.headers.get('idempotency-key')
  if (key === null || call.route === null) return undefined
  const { pathname, search } = new URL(request.url)
  const begun = await answers.begin({
    principal: call.principal.name,
    key: checkedKey(key),
    route: `${call.route.method} ${call.route.path}`,
    bodyHash: new Bun.CryptoHasher('sha256').update(`${pathname}${search}\0`).update(call.bytes).digest('hex'),
  })
  if ('kept' in begun) {
    const { status, body, headers } = begun.kept
    return jsonResponse(status, body, { ...headers, 'idempotency-replayed': 'true' })
  }
  call.claim = begun.claim
  return undefined
}

/**
 * Keeps the answer of the handler. An answer that cannot be kept is still sent: what was made is made, above all a
 * secret that is shown once.
 */
export async function keepAnswer({ claim, secretOf }: Call, answer: KeptAnswer, log: Log): Promise<void> {
  if (claim === null) return
  // A reply with a secret is never kept, even where its route does not say so.
  const shown = secretOf ?? (holdsSecret(answer.body) ? '' : undefined)
  await claim
    .keep(answer, shown)
    .catch((failed: unknown) => log.error({ error: String(failed) }, 'An idempotent answer was not kept'))
}

/**
 * Frees the key of a request that was refused. What failed on our side may have been done all the same: its key stays
 * taken for a minute, so that a repeat does not do it twice. A key that could not be freed frees itself.
 */
export async function releaseKey({ claim }: Call, thrown: unknown, log: Log): Promise<void> {
  if (claim === null || asFailure(thrown).status >= 500) return
  await claim.release().catch((failed: unknown) => log.warn({ error: String(failed) }, 'A key was not freed'))
}

function checkedKey(key: string): string {
  if (/^[\x21-\x7e]{1,255}$/.test(key)) return key
  throw new Failure('invalid_parameter', {
    message: 'Send 1 to 255 visible ASCII characters',
    param: 'Idempotency-Key',
  })
}

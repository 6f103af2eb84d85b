/**
 * Gets the request answered by one of its paths (gateway/README.md, Paths): the requested model, then its fallbacks in
 * order.
 *
 * 1. A path with an open circuit is skipped while there is another; when all are open, the first is tried.
 * 2. After a failed connection, a timeout, 408, 409, 429, 5xx, or a stream that breaks before its first frame, the same
 *    path is retried if `retry.ts` allows it, then the next. The token is checked again before each attempt, because it
 *    may have been revoked, and all attempts share one total deadline.
 * 3. The reported cost of failed attempts must be paid in addition to the bound of the next; when the budget cannot
 *    pay, there is no further attempt (usage/lease/README.md rule 16).
 * 4. The failure of the last attempt goes to the caller: the provider's own status and body, or
 *    `provider_primary_path_error`.
 *
 * Nothing is retried after a byte was passed to the caller. A client disconnect ends a call or a wait at once.
 *
 * A session keeps to its path without any stored state, because every request and worker computes the same order from
 * the session (targets/order-targets.ts). It moves only while its path is passed over.
 */
import { Failure } from '../../failure.ts'
import { coversAttempt } from '../accounting/settlement.ts'
import { checkLive } from '../admission/authenticate.ts'
import { replayAnswer } from '../cache/replay-answer.ts'
import type { Gateway } from '../context.ts'
import { cutExchange, type Exchange, type ResolvedModel, required } from '../exchange.ts'
import { relayAnswer } from '../response/answer.ts'
import { attemptCall, discardAttempt, type FailedAttempt } from './call.ts'
import { pause, waitBeforeRetry } from './retry.ts'
import { refusesKey } from './targets/target-state.ts'
import { deadlinesOf } from './timeouts.ts'

/** The progress of the search for an answer. */
interface Search {
  /** Paths that have not been tried. */
  readonly left: ResolvedModel[]
  /** The number of attempts on the present path. */
  tries: number
  /** The monotonic instant by which it must be over. */
  readonly until: number
}

export function dispatch(exchange: Exchange, gateway: Gateway): Promise<void> {
  const { chain } = exchange
  return chain === null || chain.caches.length === 0
    ? callProviders(exchange, gateway)
    : answerFromCache(exchange, gateway)
}

async function answerFromCache(exchange: Exchange, gateway: Gateway): Promise<void> {
  if (await replayAnswer(exchange, gateway)) return freeBody(exchange)
  // A kept answer that cannot be read may have been waited for.
  checkLive(exchange, gateway)
  await callProviders(exchange, gateway)
}

/** The provider has the bytes; a long stream should not keep them in memory. */
function freeBody(exchange: Exchange): void {
  exchange.body = null
  exchange.memory.sent()
}

async function callProviders(exchange: Exchange, gateway: Gateway): Promise<void> {
  const { clock, settings } = gateway
  const shadow = exchange.model?.listed?.shadow ?? null
  if (shadow !== null) gateway.shadows.prepare(exchange, gateway, shadow)
  const course: Search = {
    left: [...exchange.paths],
    tries: 0,
    until: clock.monotonic() + deadlinesOf(exchange.model?.provider ?? null, settings).total,
  }
  exchange.model = nextPath(course, gateway) ?? required(exchange.paths[0] ?? null)
  for (;;) {
    course.tries += 1
    const path = exchange.model
    let failed: FailedAttempt | null
    try {
      failed = await attemptCall(exchange, gateway)
    } catch (thrown) {
      // An answer that a policy stops was an answer: the path is healthy.
      if (thrown instanceof Failure && thrown.verdictan !== null) gateway.circuits.answered(path)
      throw thrown
    }
    noteOutcome(path, failed, gateway)
    if (failed === null) break
    if (exchange.cut !== null) throw exchange.cut.failure
    if (!(await findNext(course, exchange, gateway, failed))) {
      await passFailure(exchange, gateway, failed)
      break
    }
    // A response in the background is not made again for a caller that left.
    if (exchange.request.signal.aborted) cutExchange(exchange, 'client.left', new Failure('client_left'))
    checkLive(exchange, gateway)
  }
  freeBody(exchange)
}

/**
 * The next path that may be tried now, removed from `left`; null when there is none.
 */
function nextPath(course: Search, gateway: Gateway): ResolvedModel | null {
  return takePath(course, gateway, true) ?? takePath(course, gateway, false)
}

/** `low`: a path whose keys are near their rate limits is passed over too. It is taken out of `left` only when taken. */
function takePath({ left }: Search, { circuits, clock, targets }: Gateway, low: boolean): ResolvedModel | null {
  const now = clock.monotonic()
  for (let index = 0; index < left.length; index++) {
    const path = left[index]
    if (path === undefined || targets.isResting(path, low) || !circuits.allows(path, now)) continue
    left.splice(index, 1)
    return path
  }
  return null
}

/** Prepares the next attempt, after a wait on the same path; false when there is none. */
async function findNext(course: Search, exchange: Exchange, gateway: Gateway, failed: FailedAttempt): Promise<boolean> {
  if (exchange.stored?.call?.isOnce === true || !coversAttempt(exchange)) return false
  const path = required(exchange.model)
  const isInTime = gateway.clock.monotonic() < course.until
  if (isInTime && path.provider.keys && refusesKey(failed.status) && !gateway.targets.isResting(path, false)) {
    discardAttempt(exchange, gateway)
    return true
  }
  // Another target of the model is as good as the same one, and nothing is waited for.
  const other = isInTime && path.listed !== null && path.listed.targets !== null ? nextPath(course, gateway) : null
  const wait = other === null ? retryWait(course, exchange, gateway, failed) : null
  if (wait !== null) {
    discardAttempt(exchange, gateway)
    await pause(exchange, wait)
    return true
  }
  const next = other ?? (isInTime ? nextPath(course, gateway) : null)
  if (next === null) return false
  discardAttempt(exchange, gateway)
  exchange.model = next
  course.tries = 0
  return true
}

function retryWait(course: Search, exchange: Exchange, { settings, clock }: Gateway, failed: FailedAttempt) {
  // A key that was refused with 401 or 403 is refused again.
  if (missedDeadline(exchange) || failed.status === 401 || failed.status === 403) return null
  const rules = { retries: settings.path_retries, longestWait: 1000 * settings.retry_wait_seconds }
  const wait = waitBeforeRetry(course.tries, failed.advice, rules, jitterOf(exchange))
  return wait === null || clock.monotonic() + wait >= course.until ? null : wait
}

/** Whether a deadline of the connection or the answer ended the call: the path has used up its time. */
function missedDeadline({ attempts, call }: Exchange): boolean {
  const reason = attempts.at(-1)?.reason
  return reason === 'provider.timeout' || (reason === 'provider.unreachable' && call.abort.signal.aborted)
}

/** From 0 to 1: the id of an exchange ends in random digits. */
const jitterOf = ({ id }: Exchange): number => (Number.parseInt(id.slice(-3), 16) || 0) / 0xfff

/** Reports the result of a call to its circuit. */
function noteOutcome(path: ResolvedModel, failed: FailedAttempt | null, { circuits, clock }: Gateway): void {
  if (failed === null) {
    circuits.answered(path)
    return
  }
  const now = clock.monotonic()
  if (failed.status === null || failed.status >= 500) circuits.failed(path, now)
  const busy = failed.status === 429 || failed.status === 503
  if (busy && failed.advice.after !== null) circuits.rest(path, now, failed.advice.after)
}

/** Nothing more is tried: answers with the last failure. */
export async function passFailure(exchange: Exchange, gateway: Gateway, failed: FailedAttempt): Promise<void> {
  if (failed.status !== null) return await relayAnswer(exchange, gateway)
  const reason = exchange.attempts.at(-1)?.reason
  if (reason === 'provider.unreachable') throw new Failure('provider_primary_path_error', { cause: failed.thrown })
  if (reason !== 'provider.timeout') throw failed.thrown
  throw new Failure('provider_primary_path_error', { message: 'The provider did not answer in time' })
}

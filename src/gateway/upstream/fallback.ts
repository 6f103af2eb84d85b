/**
 * Gets the request answered by one of its paths (gateway/README.md, Paths): the model that was asked for, then its
 * fallbacks in order.
 *
 * 1. A path whose circuit is open is passed over while there is another; where all are, the first is tried.
 * 2. A failed connection, a timeout, 408, 409, 429, 5xx, or a stream that breaks before its first frame: the same path
 *    once more where `retry.ts` allows, then the next. Each try is looked at anew: the token may have been revoked
 *    meanwhile, and everything has to happen within one total deadline.
 * 3. What a failed try has already cost by its provider's own report must be paid beside the next one's bound; where the
 *    budget cannot, nothing more is tried (usage/lease/README.md rule 16).
 * 4. The last try's failure is the caller's: the provider's own status and body, or `provider_primary_path_error`.
 *
 * Nothing is tried again once a byte was passed to the caller. The caller's leaving ends a call or a wait at once.
 *
 * A session keeps to its path because the order is the same for each of its requests and for each worker, with nothing
 * remembered: a catalog model has one provider, so no two paths are of equal rank, and what moves a session is only a
 * circuit that opens on its path, or closes on one before it.
 */
import { Failure } from '../../failure.ts'
import { coversAttempt } from '../accounting/settlement.ts'
import { lookAtToken } from '../admission/authenticate.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, type ResolvedModel, required } from '../exchange.ts'
import { passAnswer } from '../response/answer.ts'
import { abandonAttempt, attemptCall, type FailedAttempt } from './call.ts'
import { waitBeforeRetry } from './retry.ts'
import { deadlinesOf } from './timeouts.ts'

/** Where the search for an answer stands. */
interface Course {
  /** Paths that have not been tried. */
  readonly left: ResolvedModel[]
  /** How often the present path was tried. */
  tries: number
  /** Monotonic instant by which it has to be over. */
  readonly until: number
}

export async function dispatch(exchange: Exchange, gateway: Gateway): Promise<void> {
  const { clock, settings } = gateway
  const course: Course = {
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
      // What a policy stops was an answer: the path is well.
      if (thrown instanceof Failure && thrown.verdictan !== null) gateway.circuits.answered(path)
      throw thrown
    }
    noteOutcome(path, failed, gateway)
    if (failed === null) break
    if (exchange.cut !== null) throw exchange.cut.failure
    if (!(await findNext(course, exchange, gateway, failed))) {
      await answerFailure(exchange, gateway, failed)
      break
    }
    lookAtToken(exchange, gateway)
  }
  // The bytes are with the provider now; a long stream should not hold them too.
  exchange.body = null
  exchange.memory.sent()
}

/** The next path that its circuit allows, taken out of those left with what it passes over; null where none does. */
function nextPath({ left }: Course, { circuits, clock }: Gateway): ResolvedModel | null {
  const now = clock.monotonic()
  for (const path of left) {
    if (!circuits.allows(path, now)) continue
    left.splice(0, left.indexOf(path) + 1)
    return path
  }
  return null
}

/** Makes the exchange ready for another try, after a wait where it is on the same path; false where there is none. */
async function findNext(course: Course, exchange: Exchange, gateway: Gateway, failed: FailedAttempt): Promise<boolean> {
  if (!coversAttempt(exchange)) return false
  const wait = retryWait(course, exchange, gateway, failed)
  if (wait !== null) {
    abandonAttempt(exchange, gateway)
    await pause(exchange, wait)
    if (exchange.cut !== null) throw exchange.cut.failure
    return true
  }
  const next = gateway.clock.monotonic() < course.until ? nextPath(course, gateway) : null
  if (next === null) return false
  abandonAttempt(exchange, gateway)
  exchange.model = next
  course.tries = 0
  return true
}

function retryWait(course: Course, exchange: Exchange, { settings, clock }: Gateway, failed: FailedAttempt) {
  if (wasTooSlow(exchange)) return null
  const rules = { retries: settings.path_retries, longestWait: 1000 * settings.retry_wait_seconds }
  const wait = waitBeforeRetry(course.tries, failed.advice, rules, jitterOf(exchange))
  return wait === null || clock.monotonic() + wait >= course.until ? null : wait
}

/** Whether a deadline ended the call, of its connection or of its answer: the path has had the time that it may take. */
function wasTooSlow({ attempts, abort }: Exchange): boolean {
  const reason = attempts.at(-1)?.reason
  return reason === 'provider.timeout' || (reason === 'provider.unreachable' && abort.signal.aborted)
}

/** From 0 to 1: an exchange's id ends in random digits. */
const jitterOf = ({ id }: Exchange): number => (Number.parseInt(id.slice(-3), 16) || 0) / 0xfff

/** Waits, or until the exchange is cut. */
function pause(exchange: Exchange, milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      exchange.onCut = null
      resolve()
    }
    const timer = setTimeout(end, milliseconds)
    exchange.onCut = end
  })
}

/** What a call tells of its path. */
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

/** No path is left: the last one's own answer, or that there was none. */
async function answerFailure(exchange: Exchange, gateway: Gateway, failed: FailedAttempt): Promise<void> {
  if (failed.status !== null) return await passAnswer(exchange, gateway)
  const reason = exchange.attempts.at(-1)?.reason
  if (reason === 'provider.unreachable') throw new Failure('provider_primary_path_error', { cause: failed.thrown })
  if (reason !== 'provider.timeout') throw failed.thrown
  throw new Failure('provider_primary_path_error', { message: 'The provider did not answer in time' })
}

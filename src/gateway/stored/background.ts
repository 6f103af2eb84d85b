/**
 * Follows a response in the background to its end, so that its cost is exact although nobody may fetch it
 * (gateway/stored/README.md).
 *
 * The exchange that made the response stays open: its open record is in the outbox and its reservation is held. The
 * gateway asks the provider for the response until its status is final, and then writes the one outcome with its usage.
 * What is never known is charged the whole reservation: after `total_timeout_seconds`, when the gateway stops or is
 * killed, when the token is revoked with its running requests, and when the response is gone.
 */
import { Failure } from '../../failure.ts'
import { parseObject } from '../../languages/reading/json-value.ts'
import { responses } from '../../languages/responses/dialect.ts'
import { endAttempt, finishExchange, logUnrecordedOutcome } from '../accounting/exchange-record.ts'
import { answeredOutcome } from '../accounting/outcome.ts'
import { capturePrompt } from '../accounting/prompt-capture.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, type Outcome, required } from '../exchange.ts'
import { restoreIdleTimeout } from '../idle-timeout.ts'
import { newCall } from '../provider-call.ts'
import { readBounded } from '../request/read-with-limit.ts'
import { pause } from '../upstream/retry.ts'
import { isRunning } from './answer-ids.ts'
import { type BackgroundResponse, newStoredState } from './stored-state.ts'

/**
 * The most responses in the background that one worker runs, of all and of one owner; each keeps its exchange in
 * memory.
 */
const mostAtOnce = 1000
const mostOfOneOwner = 100
/** Milliseconds before the first look, and at most between two. */
const firstWait = 500
const longestWait = 15_000
const growth = 1.5
/** A request to cancel a response whose token was revoked is not awaited longer. */
const cancelMilliseconds = 5000

/**
 * Admits a response in the background until its exchange ends. Throws `background_full` while the worker runs as many
 * as it may, or as one owner may have.
 */
export function admitToBackground(exchange: Exchange, { running }: Gateway): void {
  const { ownerKind, ownerId } = required(exchange.token)
  let all = 0
  let ofOwner = 0
  for (const { stored, token } of running) {
    if (stored?.isBackground !== true) continue
    all += 1
    if (token?.ownerKind === ownerKind && token.ownerId === ownerId) ofOwner += 1
  }
  if (all >= mostAtOnce || ofOwner >= mostOfOneOwner) throw new Failure('background_full')
  exchange.stored ??= newStoredState()
  exchange.stored.isBackground = true
}

/**
 * Takes the exchange over from its caller, who got or gets `status`: from here on this file ends it. Resolves when the
 * caller may be answered: at once, or when the outcome of an exchange that was cut is recorded. A second call does
 * nothing.
 */
export async function followResponse(exchange: Exchange, gateway: Gateway, status: number): Promise<void> {
  const stored = required(exchange.stored)
  if (stored.isFollowed) return
  stored.isFollowed = true
  // The provider goes on after a silence. After the total deadline the exchange is cut again.
  if (exchange.cut?.reason === 'provider.timeout') exchange.cut = null
  endAttempt(exchange, gateway, 'ok')
  exchange.promptRedacted = capturePrompt(exchange, gateway)
  // Only what the outcome needs stays in memory.
  const { metadata } = exchange.parsed ?? {}
  exchange.parsed = { metadata }
  exchange.body = null
  exchange.memory.sent()
  exchange.neutral = null
  exchange.policyContext = null
  exchange.streaming = true
  // The answer leaves now, and the caller's connection is its own again.
  exchange.watched = true
  if (exchange.idleTimeoutLifted) restoreIdleTimeout(exchange)
  exchange.idleTimeoutLifted = false
  exchange.call = { ...newCall(), background: exchange.call.background }
  const end = followToEnd(exchange, gateway, status)
  if (exchange.cut !== null) await end
}

async function followToEnd(exchange: Exchange, gateway: Gateway, status: number): Promise<void> {
  try {
    const outcome = await outcomeOf(exchange, gateway, status)
    if (exchange.cut?.reason === 'token.revoked') void cancelResponse(exchange, gateway)
    await finishExchange(exchange, gateway, outcome)
  } catch (thrown) {
    logUnrecordedOutcome(exchange, gateway, thrown)
  } finally {
    gateway.running.remove(exchange)
  }
}

/** Looks until the response is final, gone or cut. */
async function outcomeOf(exchange: Exchange, gateway: Gateway, status: number): Promise<Outcome> {
  const response = required(exchange.call.background)
  for (let wait = firstWait; ; wait = Math.min(longestWait, wait * growth)) {
    if (exchange.cut === null) await pause(exchange, wait)
    if (exchange.cut !== null) return { verdict: 'error', reason: exchange.cut.reason, status }
    const body = await look(exchange, gateway, response)
    if (exchange.cut !== null) continue
    if (body === 'gone') return { verdict: 'error', reason: 'provider.response_gone', status }
    if (body === null || isRunning(body.status)) continue
    response.hasEnded = true
    const { usage, textLength } = responses.readAnswer(body)
    exchange.call.usage = usage
    exchange.relayedCharacters = textLength
    const failed = body.status === 'failed'
    return failed ? { verdict: 'error', reason: 'provider.error', status } : answeredOutcome(exchange, status)
  }
}

/** The response as it is now; `gone` if the provider has it no more; null if the provider cannot say it. */
async function look(exchange: Exchange, gateway: Gateway, { id }: BackgroundResponse) {
  try {
    const answer = await ask(exchange, gateway, { method: 'GET', path: `/responses/${id}` }, exchange.call.abort.signal)
    const reader = answer.body?.getReader()
    const bytes = reader === undefined ? null : await readBounded(reader, gateway.settings.answer_limit_bytes)
    if (answer.status === 404) return 'gone'
    const body = answer.ok && bytes !== null ? parseObject(new TextDecoder().decode(bytes)) : null
    return body?.id === id && typeof body?.status === 'string' ? body : null
  } catch {
    // The provider is out of reach, or the exchange was cut: the next look decides.
    return null
  }
}

function ask(
  { model, slot }: Exchange,
  { fetch, settings }: Gateway,
  endpoint: { method: 'GET' | 'POST'; path: string },
  signal: AbortSignal,
): Promise<Response> {
  const { provider, kind, upstreamModel } = required(model)
  return kind.send(
    provider,
    {
      family: 'responses',
      model: upstreamModel,
      stream: false,
      endpoint,
      body: new Uint8Array(0),
      contentType: 'application/json',
      headers: { accept: 'application/json' },
      signal,
      slot,
      answerLimit: settings.answer_limit_bytes,
    },
    fetch,
  )
}

async function cancelResponse(exchange: Exchange, gateway: Gateway): Promise<void> {
  const endpoint = { method: 'POST', path: `/responses/${exchange.call.background?.id}/cancel` } as const
  try {
    const answer = await ask(exchange, gateway, endpoint, AbortSignal.timeout(cancelMilliseconds))
    await answer.body?.cancel()
  } catch (thrown) {
    const { id, requestId } = exchange
    const line = { request_id: requestId, exchange_id: id, error: String(thrown) }
    gateway.log.warn(line, 'A response in the background whose token was revoked could not be cancelled')
  }
}

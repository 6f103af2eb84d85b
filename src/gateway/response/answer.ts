/**
 * Passes the provider's answer on. Streams go to `sse.ts`, large answers that are no JSON to `binary.ts`. Everything
 * else is read whole, its outcome committed, and then answered with the received bytes and their length.
 */

import { Failure } from '../../failure.ts'
import type { Dialect } from '../../languages/dialect.ts'
import { type Family, families } from '../../languages/families.ts'
import { isGiven, isObject, type JsonObject, parseObject } from '../../languages/reading/json-value.ts'
import { readArgumentsExactly } from '../../languages/reading/texts/exact-arguments.ts'
import { UnreadableAnswer } from '../../languages/translation/translate-response.ts'
import { announcedLength } from '../../lib/http/announced-length.ts'
import { isRepetitive } from '../../lib/json/json-members.ts'
import { withNumbersOf } from '../../lib/json/keep-numbers.ts'
import { traceAnswer } from '../accounting/answer-attributes.ts'
import { endAttempt, finishExchange } from '../accounting/exchange-record.ts'
import { answeredOutcome } from '../accounting/outcome.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, type Outcome, type ReasonCode, required } from '../exchange.ts'
import { evaluateAnswer, isAnswerEvaluated } from '../policy/evaluate-response.ts'
import { headersToCaller } from '../request/headers.ts'
import { sealAnswer, sealErrorText } from '../stored/answer-ids.ts'
import { followResponse } from '../stored/background.ts'
import { isUnseen } from '../stored/stored-state.ts'
import { maskKey, maskWholeKey } from '../upstream/mask-provider-key.ts'
import { discardAnswer } from '../upstream/provider-failure.ts'
import { isTranscript, relayBinary } from './binary.ts'
import { relayStream } from './sse.ts'

/** A declared length up to which an answer that is no JSON is read whole. */
const onePieceBytes = 256 * 1024
const encoder = new TextEncoder()
const strictUtf8 = new TextDecoder('utf-8', { fatal: true })

export function relayAnswer(exchange: Exchange, gateway: Gateway): Promise<void> {
  const upstream = required(exchange.call.upstream)
  if (upstream.status >= 400) return passError(exchange, gateway, upstream)
  const relay = exchange.stored?.call?.relay
  if (relay !== undefined && upstream.status === 200) return relay(upstream)
  const type = (upstream.headers.get('content-type') ?? '').toLowerCase()
  const isEventStream = type.startsWith('text/event-stream')
  if (upstream.status < 200 || upstream.status >= 300 || isEventStream !== required(exchange.facts).stream) {
    throw discardAnswer(exchange, gateway, 'provider.invalid_answer')
  }
  if (isEventStream) return relayStream(exchange, gateway, upstream)
  if (!isPlain(exchange, type)) return passWhole(exchange, gateway, upstream)
  return isSmall(upstream) ? passSmall(exchange, gateway, upstream) : relayBinary(exchange, gateway, upstream)
}

/** Whether the family answers in this type besides JSON. */
function isPlain({ dialect }: Exchange, type: string): boolean {
  for (const start of families[dialect.family].plainAnswers ?? none) if (type.startsWith(start)) return true
  return false
}

const none: readonly string[] = []

function isSmall({ headers }: Response): boolean {
  const length = announcedLength(headers)
  return length !== null && length <= onePieceBytes
}

async function passSmall(exchange: Exchange, gateway: Gateway, upstream: Response): Promise<void> {
  const bytes = await readWhole(exchange, gateway, upstream)
  if (isTranscript(exchange)) exchange.relayedCharacters = bytes.length
  await finishExchange(exchange, gateway, answeredOutcome(exchange, upstream.status))
  answerWith(exchange, gateway, upstream, bytes)
}

async function passWhole(exchange: Exchange, gateway: Gateway, upstream: Response): Promise<void> {
  const bytes = await readWhole(exchange, gateway, upstream)
  // An answer joined here is valid and its usage noted; parsing megabytes of it would delay all other requests.
  if (exchange.call.unreportedInputTokens !== null && !isAnswerEvaluated(exchange)) {
    await finishExchange(exchange, gateway, answeredOutcome(exchange, upstream.status))
    return answerWith(exchange, gateway, upstream, bytes)
  }
  let text: string
  let body: unknown
  let sealed: string | null
  try {
    text = strictUtf8.decode(bytes)
    body = JSON.parse(text)
    sealed = sealAnswer(exchange, gateway, text, body)
  } catch (thrown) {
    throw discardAnswer(exchange, gateway, 'provider.invalid_answer', thrown)
  }
  if (sealed !== null) text = sealed
  if (!exchange.call.inspectedUpstream) noteAnswer(exchange, body)
  traceAnswer(exchange, body)
  const reason = unusableBody(exchange.dialect, body)
  if (reason !== null) throw discardAnswer(exchange, gateway, reason)
  const own = sealed === null ? bytes : encoder.encode(sealed)
  const sent = isAnswerEvaluated(exchange) ? await evaluated(exchange, gateway, upstream, body, text) : null
  const outcome = outcomeOf(exchange, upstream.status, body)
  if (isUnseen(exchange)) await followResponse(exchange, gateway, upstream.status)
  else await finishExchange(exchange, gateway, outcome)
  const passed = sent ?? countIn(exchange.dialect, body) ?? own
  const mask = outcome.verdict === 'error' ? maskKey : maskWholeKey
  answerWith(exchange, gateway, upstream, mask(exchange, passed))
}

/** A count of tokens in the form of the caller's language; null for any other answer, and in a language without one. */
function countIn({ countBody }: Dialect, body: unknown): Uint8Array | null {
  if (countBody === undefined || !isObject(body) || typeof body.input_tokens !== 'number') return null
  return encoder.encode(JSON.stringify(countBody(body.input_tokens)))
}

function noteAnswer(exchange: Exchange, body: unknown): void {
  const { usage, textLength } = exchange.dialect.readAnswer(body)
  if (exchange.call.unreportedInputTokens === null) exchange.call.usage = usage
  exchange.relayedCharacters = textLength
}

/** Members of which an answer of any other family has one. */
const otherAnswers = ['choices', 'output', 'content', 'data', 'results', 'text'] as const

const isObjectOrList = (value: unknown): boolean => typeof value === 'object' && value !== null

/** Lists in other forms, which lenient clients read, count too; policies inspect them as they are. */
function isAnswer(family: Family, body: JsonObject): boolean {
  const known = families[family].answerList
  if (known === undefined) return otherAnswers.some((member) => isGiven(body[member]))
  if (known.or !== undefined && isObject(body[known.or])) return true
  const list = body[known.member]
  if (Array.isArray(list)) return list.length === 0 ? known.mayBeEmpty : list.some(isObjectOrList)
  if (!isObject(list)) return false
  const members = Object.values(list)
  return members.length === 0 ? known.mayBeEmpty : members.some(isObjectOrList)
}

/** The reason why a body with a success status is no answer; null when it is one. */
function unusableBody({ family, countsTokens, readsStored }: Dialect, body: unknown): ReasonCode | null {
  if (!isObject(body)) return 'provider.invalid_answer'
  // Its ids were checked when they were sealed.
  if (readsStored) return isObject(body.error) && !isGiven(body.object) ? 'provider.error' : null
  if (countsTokens ? Number.isSafeInteger(body.input_tokens) : isAnswer(family, body)) return null
  const { error } = body
  if (isObject(error) || typeof error === 'string') return 'provider.error'
  // A failed or waiting response may have no output yet and says so itself.
  const isResponse = family === 'responses' && body.object === 'response' && !isGiven(body.output)
  return isResponse && typeof body.status === 'string' ? null : 'provider.invalid_answer'
}

/** A failed response passes in its own form. */
function outcomeOf(exchange: Exchange, status: number, body: unknown): Outcome {
  const failed =
    exchange.dialect.family === 'responses' &&
    !exchange.dialect.readsStored &&
    isObject(body) &&
    body.status === 'failed'
  return failed ? { verdict: 'error', reason: 'provider.error', status } : answeredOutcome(exchange, status)
}

/**
 * The answer after policies; null when it is unchanged. An answer with a duplicate member is written as it was read.
 * Throws what policies decide.
 */
async function evaluated(
  exchange: Exchange,
  gateway: Gateway,
  { status }: Response,
  body: unknown,
  text: string,
): Promise<Uint8Array | null> {
  if (!isObject(body)) throw discardAnswer(exchange, gateway, 'provider.invalid_answer')
  const asRead = isRepetitive(text, body) ? encoder.encode(withNumbersOf(text, body)) : null
  endAttempt(exchange, gateway, 'ok')
  readArgumentsExactly(body, text)
  const changed = await evaluateAnswer(exchange, gateway, { status, body })
  return changed === null ? asRead : encoder.encode(withNumbersOf(text, changed))
}

/**
 * Passes a provider error with its status and body, unless clients of the dialect could not read it
 * (handbook/reference/errors.md) or policies inspect answers, because an error may repeat the request.
 */
async function passError(exchange: Exchange, gateway: Gateway, upstream: Response): Promise<void> {
  const { status } = upstream
  const bytes = maskKey(exchange, await readWhole(exchange, gateway, upstream))
  const own = new TextDecoder().decode(bytes)
  const text = sealErrorText(exchange, own)
  const body = parseObject(text)
  noteUsageOf(exchange, body)
  const rewritten = body === null ? null : exchange.dialect.providerError(status, body, exchange.requestId)
  const passed = rewritten === null ? text : JSON.stringify(rewritten)
  const instead = isAnswerEvaluated(exchange) ? await evaluateError(exchange, gateway, status, passed) : null
  await finishExchange(exchange, gateway, { verdict: 'error', reason: 'provider.error', status })
  if (rewritten === null && instead === null && text === own) return answerWith(exchange, gateway, upstream, bytes)
  answerWith(exchange, gateway, upstream, encoder.encode(instead ?? passed))
  if (rewritten !== null) exchange.answer?.headers.set('content-type', 'application/json')
}

/** A provider error after policies, in any form; null when it is unchanged. Throws what policies decide. */
async function evaluateError(
  exchange: Exchange,
  gateway: Gateway,
  status: number,
  text: string,
): Promise<string | null> {
  endAttempt(exchange, gateway, 'provider.error')
  const parsed = parsedOrNull(text)
  if (isObject(parsed)) {
    const changed = await evaluateAnswer(exchange, gateway, { status, body: parsed })
    return changed === null ? null : withNumbersOf(text, changed)
  }
  // A body that is no object is inspected as the member of one, like an unknown member of an answer.
  const changed = await evaluateAnswer(exchange, gateway, { status, body: { refusal: parsed ?? text } })
  if (changed === null) return null
  return parsed === null ? String(changed.refusal) : JSON.stringify(changed.refusal)
}

function parsedOrNull(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // A provider error may be no JSON; then it is plain text.
    return null
  }
}

/**
 * Notes the usage that a provider error reports, before it is known whether it is passed on. Its body can be read again
 * afterwards. Throws when it breaks.
 */
export async function noteErrorUsage(exchange: Exchange, gateway: Gateway, upstream: Response): Promise<void> {
  if (!(upstream.headers.get('content-type') ?? '').includes('json')) return
  const bytes = await readWhole(exchange, gateway, upstream)
  exchange.call.upstream = new Response(bytes, { status: upstream.status, headers: upstream.headers })
  const body = parseObject(new TextDecoder().decode(bytes))
  noteUsageOf(exchange, body)
}

/** The usage that an error reports; for one of several calls it is known already. */
function noteUsageOf(exchange: Exchange, body: JsonObject | null): void {
  if (exchange.call.unreportedInputTokens !== null) return
  exchange.call.usage = body === null ? null : exchange.dialect.readAnswer(body).usage
}

function answerWith(exchange: Exchange, { clock }: Gateway, upstream: Response, bytes: Uint8Array): void {
  exchange.answer = new Response(bytes, {
    status: upstream.status,
    headers: headersToCaller(exchange, upstream, clock.now()),
  })
}

async function readWhole(exchange: Exchange, gateway: Gateway, upstream: Response): Promise<Uint8Array> {
  const limit = gateway.settings.answer_limit_bytes
  const reader = upstream.body?.getReader()
  const announced = announcedLength(upstream.headers)
  let bytes: Uint8Array | null = null
  let chunks: Uint8Array[] | null = null
  let length = 0
  try {
    while (reader !== undefined) {
      // Each chunk shows that the provider is not silent.
      exchange.call.silentSince = gateway.clock.monotonic()
      const { done, value } = await reader.read()
      if (done) break
      length += value.length
      if (length > limit) {
        await reader.cancel()
        break
      }
      if (bytes === null) bytes = value
      else if (chunks === null) chunks = [bytes, value]
      else chunks.push(value)
      const waiting = exchange.answerMemory.grow(value.length)
      // The end of a body of this length needs no further read.
      if (length === announced && waiting === undefined) break
      if (waiting === undefined) continue
      // While there is no memory for the chunk, the provider waits.
      exchange.call.silentSince = null
      await waiting
    }
  } catch (thrown) {
    // A policy decision on the answer before its translation.
    if (thrown instanceof Failure) throw exchange.cut?.failure ?? thrown
    const reason = thrown instanceof UnreadableAnswer ? thrown.reason : 'provider.interrupted'
    throw exchange.cut?.failure ?? discardAnswer(exchange, gateway, reason, thrown)
  }
  exchange.call.silentSince = null
  if (length > limit) throw discardAnswer(exchange, gateway, 'provider.answer_too_large')
  if (chunks !== null) return Buffer.concat(chunks, length)
  return bytes ?? new Uint8Array(0)
}

/**
 * Makes one call to a provider: with the caller's bytes, except for edits and the model name of an alias, or translated
 * to the provider's language, with the answer translated back. It ends when an answer can be passed on, or with the
 * failure. `fallback.ts` decides whether to try again.
 */

import { Failure } from '../../failure.ts'
import { isTranslated, memberWith } from '../../languages/families.ts'
import type { LanguageName, NeutralEvent } from '../../languages/neutral.ts'
import { markBegins } from '../../languages/reading/texts/signed-reasoning.ts'
import {
  type MemberWithoutMarks,
  mayHoldMarks,
  withoutForeignReasoning,
} from '../../languages/translation/strip-foreign-reasoning.ts'
import { translated, UnreadableAnswer } from '../../languages/translation/translate-response.ts'
import { lacksDescriptor } from '../../lib/log/host-fault.ts'
import type { UpstreamCall } from '../../providers/provider.ts'
import { InvalidStatus } from '../../providers/send-request.ts'
import { endAttempt } from '../accounting/exchange-record.ts'
import { traceHeadersOf } from '../accounting/spans.ts'
import { noUsage } from '../accounting/usage.ts'
import { wasNeverSent } from '../batches/batch-hold.ts'
import { sendAndReceive } from '../cache/keep-answer.ts'
import type { Gateway } from '../context.ts'
import { type Attempt, type Exchange, type ReasonCode, type ResolvedModel, required } from '../exchange.ts'
import { inspectedUpstream } from '../policy/upstream-inspection.ts'
import { type Call, newCall } from '../provider-call.ts'
import { editBody } from '../request/edit-body.ts'
import { headersToProvider } from '../request/headers.ts'
import { memberJson } from '../request/member-json.ts'
import { callerLanguageOf, languageOf, providerLanguageOf, translatedRequest } from '../request/translate.ts'
import { noteErrorUsage, relayAnswer } from '../response/answer.ts'
import { isUnseen } from '../stored/stored-state.ts'
import { FirstError } from './first-error.ts'
import { discardAnswer } from './provider-failure.ts'
import { isTransient, noAdvice, type RetryAdvice, retryAdvice } from './retry.ts'
import { calledProvider } from './targets/called-provider.ts'
import { refusesKey } from './targets/target-state.ts'
import { isShared } from './targets/targets.ts'

/** A call that failed before anything of it was passed to the client. */
export interface FailedAttempt {
  /** The status of the answer, if there was one; `exchange.call.upstream` can still be passed on. */
  status: number | null
  /** What a stage would throw; null when the provider's own error says it. */
  thrown: unknown
  advice: RetryAdvice
}

/**
 * Sends the request by `exchange.model`. Returns null when the answer, possibly a provider error, was passed on;
 * otherwise the failure. Throws when the exchange was cut or the answer is unusable.
 */
export async function attemptCall(exchange: Exchange, gateway: Gateway): Promise<FailedAttempt | null> {
  // A request that cannot be written is refused as such; no provider was called.
  const body = bodyToSend(exchange, gateway)
  const attempt = beginAttempt(exchange, gateway)
  try {
    exchange.call.upstream = await send(exchange, gateway, body)
  } catch (thrown) {
    if (exchange.cut !== null) {
      endAttempt(exchange, gateway, exchange.cut.reason)
      throw exchange.cut.failure
    }
    if (thrown instanceof UnreadableAnswer) throw discardAnswer(exchange, gateway, thrown.reason, thrown)
    if (!exchange.call.abort.signal.aborted && lacksDescriptor(thrown)) {
      // Another path would need one too.
      endAttempt(exchange, gateway, 'gateway.file_descriptors_exhausted')
      throw new Failure('file_descriptors_exhausted', { cause: thrown })
    }
    if (exchange.stored?.batch) exchange.stored.batch.isRefused = wasNeverSent(thrown)
    // A deadline that ended the call has set the reason already.
    const isInvalid = thrown instanceof InvalidStatus
    endAttempt(exchange, gateway, isInvalid ? 'provider.invalid_answer' : 'provider.unreachable')
    attempt.usage = exchange.call.usage
    const failure = isInvalid ? new Failure('upstream_provider_error', { cause: thrown }) : thrown
    return { status: null, thrown: failure, advice: noAdvice }
  }
  const upstream = required(exchange.call.upstream)
  if (exchange.stored?.batch) exchange.stored.batch.isRefused = upstream.status >= 400
  exchange.call.silentSince = null
  attempt.firstByteMs = Math.round(gateway.clock.monotonic() - attempt.startedMonotonic)
  attempt.status = upstream.status
  const path = required(exchange.model)
  if (isShared(path)) gateway.targets.heard(path, attempt.key ?? 0, upstream)
  if (mayBeAnsweredElsewhere(upstream.status, path)) return await refused(exchange, gateway, upstream, attempt)
  try {
    await relayAnswer(exchange, gateway)
    return null
  } catch (thrown) {
    if (thrown instanceof FirstError) return await refusedFirst(exchange, gateway, thrown.refusal, attempt)
    // A stream that breaks before anything of it arrived is no answer. A response in the background goes on.
    if (isUnseen(exchange) || (!hasNoOutput(exchange) && !wasErrorBody(exchange))) throw thrown
    return { status: null, thrown, advice: noAdvice }
  }
}

/** An error that another path may answer: the usage it reports is noted first. */
async function refused(
  exchange: Exchange,
  gateway: Gateway,
  upstream: Response,
  attempt: Attempt,
): Promise<FailedAttempt> {
  const advice = retryAdvice(upstream.headers, gateway.clock.now())
  try {
    await noteErrorUsage(exchange, gateway, upstream)
  } catch (thrown) {
    if (exchange.cut !== null) throw thrown
    return { status: null, thrown, advice }
  }
  attempt.usage = exchange.call.usage
  return { status: upstream.status, thrown: null, advice }
}

/** An error in the first event of a stream is handled like one by status. */
async function refusedFirst(
  exchange: Exchange,
  gateway: Gateway,
  refusal: Response,
  attempt: Attempt,
): Promise<FailedAttempt | null> {
  beginNextCall(exchange)
  exchange.call.upstream = refusal
  attempt.status = refusal.status
  const path = required(exchange.model)
  gateway.targets.heard(path, attempt.key ?? 0, refusal)
  if (mayBeAnsweredElsewhere(refusal.status, path)) return await refused(exchange, gateway, refusal, attempt)
  await relayAnswer(exchange, gateway)
  return null
}

/** A refused key concerns the caller only where no other key or target can answer. */
const mayBeAnsweredElsewhere = (status: number, path: ResolvedModel): boolean =>
  isTransient(status) || (refusesKey(status) && isShared(path))

/** Whether a whole answer was a provider error with a success status: the call failed, and another may succeed. */
const wasErrorBody = ({ call, outcomeCommitted, cut, attempts }: Exchange): boolean =>
  call.reader === null && outcomeCommitted === null && cut === null && attempts.at(-1)?.reason === 'provider.error'

const brokenOff: ReadonlySet<ReasonCode> = new Set([
  'provider.interrupted',
  'provider.timeout',
  'provider.unreachable',
  'provider.error',
])

/**
 * Whether a stream broke, or began with an error, with nothing of it passed on or generated. What a policy stopped,
 * what was charged and what cannot be read is final, because another path would be asked the same again.
 */
export function hasNoOutput(
  exchange: Pick<Exchange, 'streaming' | 'outcomeCommitted' | 'cut' | 'attempts' | 'relayedCharacters'> & {
    readonly call: Pick<Call, 'reader' | 'usage'>
  },
): boolean {
  const { streaming, outcomeCommitted, cut, attempts, relayedCharacters } = exchange
  const { reader, usage } = exchange.call
  const open = reader !== null && !streaming && outcomeCommitted === null && cut === null
  return open && relayedCharacters === 0 && usage === null && brokenOff.has(attempts.at(-1)?.reason ?? 'ok')
}

/** Discards a failed call and its traces, so that the next one finds the exchange as the first did. */
export function discardAttempt(exchange: Exchange, gateway: Gateway): void {
  endAttempt(exchange, gateway, 'provider.error')
  const attempt = exchange.attempts.at(-1)
  if (attempt !== undefined) attempt.usage = exchange.call.usage
  beginNextCall(exchange)
}

/** Drops a failed call: what is left of it is cancelled, and the next answer is inspected from its beginning. */
function beginNextCall(exchange: Exchange): void {
  exchange.call.abort.abort()
  exchange.call.received?.drop()
  exchange.call = newCall()
  const { policyResults } = exchange
  const ofAnswer = policyResults.findIndex(({ stage }) => stage !== 'pre_request')
  if (ofAnswer >= 0) policyResults.length = ofAnswer
}

export function bodyToSend(exchange: Exchange, gateway: Gateway): Uint8Array {
  const path = required(exchange.model)
  const language = languageOf(exchange, path)
  return language === null ? ownBody(exchange) : translatedRequest(exchange, gateway, path, language)
}

function send(exchange: Exchange, gateway: Gateway, body: Uint8Array): Promise<Response> {
  const path = required(exchange.model)
  const { kind, upstreamModel } = path
  const provider = calledProvider(exchange, path)
  const language = languageOf(exchange, path)
  const call: UpstreamCall = {
    family: exchange.dialect.family,
    model: upstreamModel,
    stream: required(exchange.facts).stream,
    ...(exchange.dialect.countsTokens && { countTokens: true as const }),
    ...endpointOf(exchange),
    body,
    contentType: language === null ? exchange.contentType : 'application/json',
    headers: headersToProvider(
      exchange.request.headers,
      exchange.dialect.family,
      traceHeadersOf(exchange, exchange.attempts.at(-1)?.spanId ?? null),
      language !== null,
    ),
    signal: exchange.call.abort.signal,
    slot: exchange.slot,
    answerLimit: gateway.settings.answer_limit_bytes,
    // A large file may take longer than a provider may be silent.
    ...(exchange.stored?.call?.body !== undefined && { sending: () => noteSending(exchange, gateway) }),
    counted: (reported, unreported) => noteCallUsage(exchange, gateway, reported, unreported),
  }
  if (exchange.transport !== null) return exchange.transport(call)
  if (language !== null) return sendTranslated(exchange, gateway, call, language)
  return exchange.cache === null ? kind.send(provider, call, gateway.fetch) : sendAndReceive(exchange, gateway, call)
}

/** The method and path of a call that is not a POST to the family's own path. */
function endpointOf({ stored, dialect }: Exchange): Pick<UpstreamCall, 'endpoint'> {
  if (stored !== null && stored.call !== null) return { endpoint: stored.call }
  return dialect.endpoint === undefined ? {} : { endpoint: { method: 'POST', path: dialect.endpoint } }
}

/** Calls the provider in its language, by that language's route if it is a dialect too. */
async function sendTranslated(
  exchange: Exchange,
  gateway: Gateway,
  call: UpstreamCall,
  language: LanguageName,
): Promise<Response> {
  const path = required(exchange.model)
  const spoken = { ...call, family: language === 'converse' ? exchange.dialect.family : language }
  const answer = await (exchange.cache === null
    ? path.kind.send(calledProvider(exchange, path), spoken, gateway.fetch)
    : sendAndReceive(exchange, gateway, spoken))
  // A kind gives a count in the caller's form; an error is in its own language.
  if (exchange.dialect.countsTokens && answer.ok) return answer
  return inCallersLanguage(exchange, gateway, answer, language)
}

/** An answer in the language of the caller. Policies on a provider's answer see it before. */
export function inCallersLanguage(
  exchange: Exchange,
  gateway: Gateway,
  answer: Response,
  language: LanguageName,
): Response | Promise<Response> {
  return translated(inspectedUpstream(exchange, gateway, answer, language), {
    from: providerLanguageOf(language),
    to: callerLanguageOf(exchange.dialect.family),
    // Chat streams always request usage; the relay removes the frame if the caller did not ask for it.
    asked: {
      model: required(exchange.facts).model,
      exchangeId: exchange.id,
      includeUsage: true,
      request: required(exchange.neutral).body,
    },
    limit: gateway.settings.answer_limit_bytes,
    heard() {
      if (exchange.call.silentSince !== null) exchange.call.silentSince = gateway.clock.monotonic()
    },
    told(event) {
      if (!exchange.call.inspectedUpstream) noteEventUsage(exchange, event)
    },
  })
}

function noteSending({ call }: Exchange, { clock }: Gateway): void {
  if (call.silentSince !== null) call.silentSince = clock.monotonic()
}

/** Notes the cost of calls of a request that is sent as several. Each shows that the provider is not silent. */
function noteCallUsage(exchange: Exchange, { clock }: Gateway, reported: number | null, unreported: number): void {
  exchange.call.unreportedInputTokens = unreported
  if (reported !== null) exchange.call.usage = { ...noUsage, inputTokens: reported }
  if (exchange.call.silentSince !== null) exchange.call.silentSince = clock.monotonic()
}

/** A usage report in a translated stream counts when it arrives; some dialects state usage only at the end. */
function noteEventUsage(exchange: Exchange, event: NeutralEvent): void {
  if (event.type === 'text') exchange.call.charactersSinceUsage += event.text.length
  if (event.type !== 'usage') return
  exchange.call.usage = event.usage
  exchange.call.charactersSinceUsage = 0
}

/** Begins a call to the provider of the exchange's model. */
export function beginAttempt(exchange: Exchange, { clock, newId, tracer, targets }: Gateway): Attempt {
  const path = required(exchange.model)
  const { provider, upstreamModel } = path
  const target = targets.of(path)
  const key = targets.chooseKey(target, exchange.sessionId)
  const attempt: Attempt = {
    eventId: newId(),
    spanId: exchange.trace?.spanId ? tracer.newSpanId() : null,
    provider: provider.name,
    model: upstreamModel,
    startedAt: clock.now(),
    startedMonotonic: clock.monotonic(),
    firstByteMs: null,
    latencyMs: null,
    status: null,
    reason: 'ok',
    target,
    key,
  }
  target.begin(key, attempt.startedMonotonic)
  exchange.attempts.push(attempt)
  exchange.call.silentSince = attempt.startedMonotonic
  return attempt
}

const noBody = new Uint8Array(0)

/** The caller's body as its own provider gets it. */
export function ownBody(exchange: Exchange): Uint8Array {
  // A call for a stored object may have none; its bytes then only stand for it in events.
  const call = exchange.stored?.call
  if (call?.body !== undefined) return call.body
  if (call && exchange.members === null) return noBody
  const body = required(exchange.body)
  const { upstreamModel } = required(exchange.model)
  const { dialect } = exchange
  const alias = required(exchange.facts).model !== upstreamModel
  const unmarked = unmarkedMember(exchange, body)
  if (!alias && unmarked === null && exchange.edits.size === 0 && dialect.wireForm === undefined) return body
  const edits = new Map(exchange.edits)
  if (alias) edits.set('model', JSON.stringify(upstreamModel))
  if (unmarked !== null) edits.set(unmarked.member, memberJson(exchange, unmarked.member, unmarked.value))
  const edited = editBody(body, required(exchange.members), edits)
  if (dialect.wireForm === undefined) return edited
  return new TextEncoder().encode(dialect.wireForm(new TextDecoder().decode(edited)))
}

/**
 * Reasoning of other providers earlier in the conversation, and reasoning of this one that policies altered, which it
 * would refuse; null when there is none.
 */
function unmarkedMember({ dialect, parsed, edits }: Exchange, body: Uint8Array): MemberWithoutMarks | null {
  if (!isTranslated(dialect.family)) return null
  const conversation = edits.get(memberWith(dialect.family, 'conversation') ?? '')
  const holdsMarks = mayHoldMarks(body) || conversation?.includes(markBegins) === true
  if (!holdsMarks) return null
  return withoutForeignReasoning(dialect.family, required(parsed))
}

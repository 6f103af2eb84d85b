/**
 * Answers a request from the cache (README.md). The kept bytes take the way of a provider's answer: translation, the
 * policies on answers, and the form that the caller asked for. No provider is called, and no circuit counts it.
 */
import { Failure } from '../../failure.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, type ResolvedModel, required } from '../exchange.ts'
import { languageOf } from '../request/translate.ts'
import { relayAnswer } from '../response/answer.ts'
import { bodyToSend, discardAttempt, inCallersLanguage } from '../upstream/call.ts'
import type { KeptAnswer } from './cache-file.ts'
import { cacheKey } from './cache-key.ts'
import { cacheUseOf } from './cache-use.ts'

/**
 * Whether the request was answered. Looks at the targets of the requested model, and at no fallback, whose answer would
 * hide that the model works again. Throws what a policy decides.
 */
export async function replayAnswer(exchange: Exchange, gateway: Gateway): Promise<boolean> {
  exchange.cache = cacheUseOf(exchange, gateway)
  if (exchange.cache?.result !== 'miss') return false
  const asked = required(exchange.model)
  const targets = exchange.paths.filter(({ id }) => id === asked.id)
  for (const path of targets) {
    exchange.model = path
    const key = cacheKey(exchange, gateway, path, bodyToSend(exchange, gateway))
    const kept = gateway.cache.get(key, gateway.clock.now())
    if (kept === null) continue
    exchange.cache.result = 'hit'
    if (await replay(exchange, gateway, path, kept)) return true
    exchange.cache.result = 'miss'
    gateway.cache.delete(key)
  }
  exchange.model = asked
  return false
}

/** Gives a kept answer; false if it cannot be read, and then nothing of it was passed on. */
async function replay(
  exchange: Exchange,
  gateway: Gateway,
  path: ResolvedModel,
  { contentType, body }: KeptAnswer,
): Promise<boolean> {
  const language = languageOf(exchange, path)
  // The length says that the body is whole.
  const headers = { 'content-type': contentType, 'content-length': String(body.length) }
  const answer = new Response(body, { headers })
  try {
    exchange.call.upstream = language === null ? answer : await inCallersLanguage(exchange, gateway, answer, language)
    await relayAnswer(exchange, gateway)
    return true
  } catch (thrown) {
    const isDecided = thrown instanceof Failure && thrown.verdictan !== null
    if (isDecided || exchange.cut !== null || exchange.outcomeCommitted !== null) throw thrown
    gateway.log.warn({ request_id: exchange.requestId, error: String(thrown) }, 'A cached answer could not be read')
    discardAttempt(exchange, gateway)
    return false
  }
}

/**
 * Collects a provider's answer while it is received, as its bytes came, and keeps it when the exchange has ended well.
 * Errors, answers that broke off and answers that a policy stopped are never kept.
 */
import type { Verdict } from '../../events/event.ts'
import type { UpstreamCall } from '../../providers/provider.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, type Outcome, type ResolvedModel, required } from '../exchange.ts'
import { calledProvider } from '../upstream/targets/called-provider.ts'
import { cacheKey } from './cache-key.ts'
import { ReceivedAnswer } from './cache-state.ts'

/** Verdicts of answers that reached their caller whole; policies run again when the kept answer is given. */
const passed: ReadonlySet<Verdict> = new Set<Verdict>(['allow', 'redact', 'rewrite'])

/**
 * Sends the call and collects its answer as it is read, unless it may not be kept. The key is made before the call, so
 * that an answer to a request from before a clearing is not found after it.
 */
export async function sendAndReceive(exchange: Exchange, gateway: Gateway, call: UpstreamCall): Promise<Response> {
  const path = required(exchange.model)
  const keeps = exchange.cache?.keeps === true
  const received = keeps ? receive(exchange, gateway, path, call.body) : null
  const answer = await path.kind.send(calledProvider(exchange, path), call, gateway.fetch)
  if (received === null || answer.status !== 200 || answer.body === null) return answer
  received.contentType = answer.headers.get('content-type') ?? ''
  exchange.call.received = received
  const reader = answer.body.getReader()
  const source = {
    // Referenced so that it is not garbage-collected while its body is read.
    answer,
    async pull(outlet: ReadableStreamDefaultController<Uint8Array>) {
      const { done, value } = await reader.read()
      if (done) return outlet.close()
      received.add(value)
      outlet.enqueue(value)
    },
    cancel: (reason: unknown) => reader.cancel(reason),
  }
  return new Response(new ReadableStream(source, { highWaterMark: 0 }), { headers: answer.headers })
}

const receive = (exchange: Exchange, gateway: Gateway, path: ResolvedModel, body: Uint8Array): ReceivedAnswer =>
  new ReceivedAnswer(cacheKey(exchange, gateway, path, body), path.id, gateway.worker.view.version, gateway.cache)

/** Keeps what the exchange received if it ended well. Call it once, when its outcome is known. */
export function keepAnswer({ call, cache }: Exchange, gateway: Gateway, { verdict }: Outcome): void {
  const { received } = call
  if (received === null || cache === null) return
  call.received = null
  const body = passed.has(verdict) ? received.bytes() : null
  received.drop()
  if (body === null) return
  const { key, model, contentType, stateVersion } = received
  const keptAt = gateway.clock.now()
  gateway.cache.put(key, {
    model,
    contentType,
    body,
    stateVersion,
    keptAt,
    expiresAt: keptAt + 1000 * cache.rule.seconds,
  })
}

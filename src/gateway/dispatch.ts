/** Sends the request to its provider: the caller's bytes as they came, but for the model's name where it is an alias. */
import { Failure } from '../failure.ts'
import { editBody } from './body-edits.ts'
import { type Attempt, type Exchange, type Gateway, given } from './exchange.ts'
import { headersToProvider } from './headers.ts'
import { endAttempt } from './record.ts'

export async function dispatch(exchange: Exchange, gateway: Gateway): Promise<void> {
  const { provider, kind, upstreamModel } = given(exchange.model)
  const attempt = beginAttempt(exchange, gateway)
  exchange.waitingSince = attempt.startedMonotonic
  const call = {
    family: exchange.dialect.family,
    model: upstreamModel,
    stream: given(exchange.facts).stream,
    body: bodyToSend(exchange),
    contentType: exchange.contentType,
    headers: headersToProvider(exchange.request.headers),
    signal: exchange.abort.signal,
  }
  try {
    exchange.upstream = await kind.send(provider, call, gateway.fetch)
  } catch (thrown) {
    endAttempt(exchange, gateway, exchange.cut?.reason ?? 'provider.unreachable')
    throw exchange.cut?.failure ?? new Failure('provider_primary_path_error', { cause: thrown })
  }
  // The bytes are with the provider now; a long stream should not hold them too.
  exchange.body = null
  exchange.waitingSince = null
  attempt.firstByteMs = Math.round(gateway.clock.monotonic() - attempt.startedMonotonic)
  attempt.status = exchange.upstream.status
}

function beginAttempt(exchange: Exchange, { clock, newId }: Gateway): Attempt {
  const { provider, upstreamModel } = given(exchange.model)
  const attempt: Attempt = {
    eventId: newId(),
    provider: provider.name,
    model: upstreamModel,
    startedAt: clock.now(),
    startedMonotonic: clock.monotonic(),
    firstByteMs: null,
    latencyMs: null,
    status: null,
    reason: 'ok',
  }
  exchange.attempts.push(attempt)
  return attempt
}

function bodyToSend(exchange: Exchange): Uint8Array {
  const body = given(exchange.body)
  const { id, upstreamModel } = given(exchange.model)
  const edits = new Map(exchange.edits)
  if (id !== upstreamModel) edits.set('model', JSON.stringify(upstreamModel))
  return edits.size === 0 ? body : editBody(body, given(exchange.members), edits)
}

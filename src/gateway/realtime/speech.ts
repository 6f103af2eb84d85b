/**
 * The cost of transcripts. A model of its own writes what is said in a session, and its provider bills it by itself. So
 * each is an exchange: the model is resolved and allowed like any other, its cost is reserved by the length of the
 * sound, and settled by the usage of its last event. It is admitted when the sound enters the conversation, which is
 * when the provider begins to write; one that is refused ends the session.
 */

import { transcriptions } from '../../languages/audio/transcriptions.ts'
import { readAudioUsage } from '../../languages/audio/usage.ts'
import type { JsonObject } from '../../languages/reading/json-value.ts'
import { textOf } from '../../languages/reading/json-value.ts'
import { textLength } from '../../languages/reading/texts/texts.ts'
import { finishExchange } from '../accounting/exchange-record.ts'
import { answeredOutcome } from '../accounting/outcome.ts'
import { resolveModel } from '../admission/model-routing.ts'
import type { Gateway } from '../context.ts'
import { type Attempt, beginExchange, type Exchange, type ReasonCode, required } from '../exchange.ts'
import { orUntilCut } from '../mcp/call.ts'
import { beginAttempt } from '../upstream/call.ts'
import type { SessionFacts } from './stages.ts'

/** Estimates read a length of sound from bytes at this rate (`accounting/usage.ts`). */
const bytesPerSecond = 16_000

/** Something that was said, until its transcript is there. */
export interface Speech {
  readonly model: string
  readonly seconds: number
  /** Resolves with the event that ends the transcript; null if none came. */
  readonly written: Promise<JsonObject | null>
}

/** Makes the request for a transcript of what stands in the session. */
export const readSpeech =
  ({ model, seconds }: Speech) =>
  (exchange: Exchange): void => {
    const bytes = Math.ceil(seconds * bytesPerSecond)
    exchange.parsed = { model, file: { bytes } }
    exchange.facts = exchange.dialect.read(exchange.parsed)
    // It stands for the sound, which has gone to the provider.
    exchange.body = new Uint8Array(bytes)
  }

/** The transcript is written by the session's own provider, whoever else has a model of that name. */
export const writtenBySession =
  ({ path, sessionId }: SessionFacts) =>
  (exchange: Exchange): void => {
    const model = required(exchange.model)
    if (model.provider.id !== path.provider.id) {
      exchange.model = { ...model, provider: path.provider, kind: path.kind, listed: null }
    }
    exchange.paths = [required(exchange.model)]
    exchange.sessionId = sessionId
  }

/** Waits for the transcript and settles its usage. */
export const awaitTranscript =
  ({ written }: Speech) =>
  async (exchange: Exchange, gateway: Gateway): Promise<void> => {
    exchange.body = null
    const attempt = beginAttempt(exchange, gateway)
    const late = Promise.withResolvers<null>()
    exchange.call.abort.signal.addEventListener('abort', () => late.resolve(null), { once: true })
    const event = await orUntilCut(exchange, Promise.race([written, late.promise]))
    exchange.call.usage = readAudioUsage(event?.usage)
    exchange.relayedCharacters = textLength(event?.transcript)
    const reason = event === null ? reasonOfNone(exchange, attempt) : reasonOf(event)
    const outcome =
      reason === 'ok' ? answeredOutcome(exchange, 200) : ({ verdict: 'error', reason, status: 200 } as const)
    await finishExchange(exchange, gateway, outcome)
    exchange.answer = new Response(null, { status: 204 })
  }

const reasonOf = ({ type }: JsonObject): ReasonCode =>
  textOf(type)?.endsWith('.completed') === true ? 'ok' : 'provider.error'

/** Why no transcript came: a deadline, or the end of the session. */
function reasonOfNone({ request }: Exchange, { latencyMs, reason }: Attempt): ReasonCode {
  if (latencyMs !== null) return reason
  return request.signal.aborted ? 'client.left' : 'provider.interrupted'
}

/** Checks that the session's token may use a model for transcripts. Throws what a request for it would be refused with. */
export function checkTranscriber(session: Exchange, gateway: Gateway, model: string): void {
  const { request, connection, requestId, route, token } = session
  const dialect = transcriptions
  const exchange = beginExchange({ request, connection, requestId, route, family: dialect.family, dialect }, gateway)
  exchange.token = token
  exchange.parsed = { model }
  exchange.facts = dialect.read(exchange.parsed)
  resolveModel(exchange, gateway)
}

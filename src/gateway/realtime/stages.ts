/**
 * The stages that only a realtime session has (`pipeline.ts` lists all of them). An event with text, or with settings,
 * passes the policies of requests before the provider gets it. A response is a request with a cost. A transcript of
 * what is said is a request to the model that writes it.
 */
import { Failure } from '../../failure.ts'
import { type JsonObject, parseObject } from '../../languages/reading/json-value.ts'
import { Placeholders } from '../../policies/redaction.ts'
import { finishExchange } from '../accounting/exchange-record.ts'
import { answeredOutcome } from '../accounting/outcome.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, type ResolvedModel, required } from '../exchange.ts'
import { editBody } from '../request/edit-body.ts'
import { holdSound } from './sound-hold.ts'
import type { Turn } from './turn.ts'

/** What the exchanges of one session share. */
export interface SessionFacts {
  /** The model at the provider that the session is connected to. */
  readonly path: ResolvedModel
  /** By which events of the session are found together: its client's name for it, or the id of the handshake. */
  readonly sessionId: string
  /** What policies removed from requests, to be restored in answers; null before the first. */
  placeholders: Placeholders | null
  /** The conversation in tokens, estimated; of which are sound. */
  context: { tokens: number; sound: number }
}

/** Names the session, and keeps the request to the provider that holds its conversation. */
export const keepSession =
  (session: SessionFacts) =>
  (exchange: Exchange): void => {
    const { provider, upstreamModel } = required(exchange.model)
    if (provider.id !== session.path.provider.id || upstreamModel !== session.path.upstreamModel) {
      const message = 'The model is served by another provider now, which does not have the conversation'
      throw new Failure('realtime_session_ended', { message, param: 'model' })
    }
    exchange.paths = [required(exchange.model)]
    exchange.sessionId = session.sessionId
    session.placeholders ??= new Placeholders(exchange.parsed)
    exchange.placeholders = session.placeholders
  }

/** Lets an event of the client pass, as policies left it. `pass` gets its body without the model. */
export const passEvent =
  (pass: (body: JsonObject) => void) =>
  async (exchange: Exchange, gateway: Gateway): Promise<void> => {
    exchange.notes.push('request.not_generated')
    await finishExchange(exchange, gateway, answeredOutcome(exchange, 200))
    pass(editedBody(exchange))
    exchange.answer = new Response(null, { status: 204 })
  }

/** The body with what policies changed. */
function editedBody({ body, members, edits }: Exchange): JsonObject {
  const bytes = required(body)
  const text = new TextDecoder().decode(edits.size === 0 ? bytes : editBody(bytes, required(members), edits))
  const { model: _, ...rest } = parseObject(text) ?? {}
  return rest
}

/** Adds the conversation, which the provider holds, to the estimate of the input. */
export const addContext =
  ({ context }: SessionFacts) =>
  (exchange: Exchange): void => {
    const facts = required(exchange.facts)
    const inputEstimate = facts.inputEstimate + context.tokens
    exchange.facts = { ...facts, inputEstimate, ...(context.sound > 0 && { soundEstimate: context.sound }) }
  }

/** Makes the session the provider's side of the call. */
export const callSession =
  (turn: Turn) =>
  (exchange: Exchange, { settings }: Gateway): void => {
    turn.exchange = exchange
    exchange.transport = turn.send
    holdSound(exchange, settings.stream_hold_bytes)
  }

/**
 * Answers a frame that asks for no output (`generate: false`). Its client opens a conversation ahead of time, to refer
 * to it in the next frame. The gateway keeps the conversation itself, so no provider is called.
 */
import { emptyResponse } from '../../languages/responses/answer.ts'
import { finishExchange } from '../accounting/exchange-record.ts'
import { answeredOutcome } from '../accounting/outcome.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'

export async function answerWarmUp(exchange: Exchange, gateway: Gateway): Promise<void> {
  exchange.notes.push('request.not_generated')
  const events = emptyResponse(required(exchange.facts).model, exchange.id, required(exchange.parsed))
  await finishExchange(exchange, gateway, answeredOutcome(exchange, 200))
  const frames = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
  exchange.answer = new Response(frames, { headers: { 'content-type': 'text/event-stream' } })
}

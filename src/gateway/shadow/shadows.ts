/**
 * Sends a share of a model's requests a second time, to its shadow target, after their callers have their answers, and
 * records how the two answers compare (README.md). The caller waits for nothing of it, and nothing of it reaches the
 * caller: its exchange is another one, with an abort, an outcome and a reservation of its own.
 *
 * A shadow is left out, and counted, while too many run, while request bodies or answers wait for memory, and while the
 * gateway drains. It is called once: without a retry or a fallback, and no circuit counts it.
 */
import type { CostAttribution, Verdict } from '../../events/event.ts'
import type { ShadowTarget } from '../../fleet/protocol/worker.ts'
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import { openRecord } from '../accounting/open-record.ts'
import { checkToken } from '../admission/authenticate.ts'
import { reserveUsage } from '../admission/reserve.ts'
import type { Gateway, ShadowRunner } from '../context.ts'
import { answerFailure } from '../error-response.ts'
import { beginExchange, type Exchange, type Outcome, type ResolvedModel, required } from '../exchange.ts'
import { prepareInspection } from '../policy/evaluate-response.ts'
import { translateRequest } from '../request/translate.ts'
import { attemptCall } from '../upstream/call.ts'
import { passFailure } from '../upstream/fallback.ts'
import { shadowTarget } from './shadow-target.ts'

/** Of one worker: those that run, and those whose callers are still being answered. */
export const mostShadows = 8
/** A longer body is not sent a second time: it would have to be kept until the caller has its answer. */
export const longestBodyBytes = 1024 * 1024

/** Verdicts of answers that reached their callers. */
const answered: ReadonlySet<Verdict> = new Set<Verdict>(['allow', 'redact', 'rewrite'])

export class Shadows implements ShadowRunner {
  #open = 0

  prepare(exchange: Exchange, gateway: Gateway, shadow: ShadowTarget): void {
    const { body } = exchange
    if (body === null || body.length > longestBodyBytes) return
    const target = shadowTarget(exchange, gateway, shadow)
    if (target === null) return
    if (this.#open >= mostShadows || gateway.memory.waiting > 0 || gateway.draining) {
      gateway.meter.shadowed('skipped', undefined)
      return
    }
    this.#open += 1
    const ended = (outcome: Outcome, cost: CostAttribution | undefined) => {
      exchange.shadow = null
      const sends = answered.has(outcome.verdict) && outcome.status === 200 && !gateway.draining
      if (sends) void send(exchange, gateway, { body, target, outcome, cost }).finally(closed)
      else closed()
    }
    const closed = () => {
      this.#open -= 1
    }
    exchange.shadow = { ended }
  }
}

interface Second {
  readonly body: Uint8Array
  readonly target: ResolvedModel
  /** Of the caller's exchange. */
  readonly outcome: Outcome
  readonly cost: CostAttribution | undefined
}

/** Never rejects. */
async function send(first: Exchange, gateway: Gateway, second: Second): Promise<void> {
  try {
    await first.outcomeCommitted
    // The caller's last bytes leave first.
    await yieldToEventLoop()
    if (!gateway.draining) await sendNow(first, gateway, second)
  } catch (error) {
    gateway.log.error({ request_id: first.requestId, error: String(error) }, 'A shadow could not be sent')
  }
}

async function sendNow(first: Exchange, gateway: Gateway, second: Second): Promise<void> {
  const exchange = secondExchange(first, gateway, second)
  gateway.running.add(exchange)
  try {
    // Revoked since, or during a wait: nothing more of its requests leaves.
    checkToken(first, gateway)
    prepareInspection(exchange, gateway)
    translateRequest(exchange, gateway)
    await reserveUsage(exchange, gateway)
    checkToken(first, gateway)
    await openRecord(exchange, gateway)
    checkToken(first, gateway)
    const failed = await attemptCall(exchange, gateway)
    if (failed !== null) await passFailure(exchange, gateway, failed)
    await readToItsEnd(required(exchange.answer))
  } catch (thrown) {
    await answerFailure(exchange, gateway, thrown)
  } finally {
    gateway.running.remove(exchange)
  }
}

/** The relay of a stream ends the exchange when it is read. */
async function readToItsEnd({ body }: Response): Promise<void> {
  if (body === null) return
  const reader = body.getReader()
  while (!(await reader.read()).done);
}

/** The same request to another target, on the account of the organization. */
function secondExchange(first: Exchange, gateway: Gateway, { body, target, outcome, cost }: Second): Exchange {
  const { url, method, headers } = first.request
  const { requestId, route, family, dialect } = first
  const request = new Request(url, { method, headers })
  const second = beginExchange({ request, connection: null, requestId, route, family, dialect, body }, gateway)
  const { contentType, members, parsed, rewritten, facts, promptHash, chain, policyContext } = first
  const edits = new Map(first.edits)
  // Whatever the caller wants to be stored is stored once.
  if (dialect.family === 'responses' || first.parsed?.store === true) edits.set('store', 'false')
  return Object.assign(second, {
    ...{ contentType, members, parsed, rewritten, facts, promptHash, chain, policyContext, edits },
    ...{ sessionId: first.sessionId, client: first.client, workload: first.workload },
    token: { ...required(first.token), accounts: [], budgetId: null },
    placeholders: first.placeholders,
    model: target,
    paths: [target],
    shadowed: {
      exchange_id: first.id,
      provider: first.model?.provider.name ?? null,
      model: first.model?.upstreamModel ?? null,
      verdict: outcome.verdict,
      latency_ms: Math.round(gateway.clock.monotonic() - first.startedMonotonic),
      first_token_ms: first.firstTokenMs,
      answer_characters: first.relayedCharacters,
      output_tokens: cost?.output_tokens ?? null,
      cost: cost?.cost ?? null,
    },
  } satisfies Partial<Exchange>)
}

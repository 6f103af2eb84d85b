/**
 * Passes the output of a batch on: each answer runs through the policies on answers of its family before its line
 * leaves. A redacted answer stays in its line; a stopped one becomes an error in its place. One line is in memory at a
 * time, and a slow caller slows the provider.
 */
import { asFailure, Failure } from '../../../failure.ts'
import { dialects } from '../../../languages/index.ts'
import type { JsonObject } from '../../../languages/reading/json-value.ts'
import { readArgumentsExactly } from '../../../languages/reading/texts/exact-arguments.ts'
import { LineReader } from '../../../lib/http/line-reader.ts'
import { withNumbersOf } from '../../../lib/json/keep-numbers.ts'
import { withoutLength } from '../../../providers/send-request.ts'
import { chainFor } from '../../admission/policy-chain.ts'
import type { Gateway } from '../../context.ts'
import { beginExchange, type Exchange, required } from '../../exchange.ts'
import { evaluateAnswer, isAnswerEvaluated } from '../../policy/evaluate-response.ts'
import { relayBinary } from '../../response/binary.ts'
import type { BatchOrigin } from '../file-place.ts'
import { addLineResults, withoutWaiting } from '../line-results.ts'
import { openBatchOf } from './open-batch.ts'
import { type OutputLine, readOutputLine } from './output-lines.ts'

const encoder = new TextEncoder()

export async function relayOutput(
  exchange: Exchange,
  gateway: Gateway,
  { upstream, origin }: { upstream: Response; origin: BatchOrigin },
): Promise<void> {
  gateway.batches.seen(openBatchOf(exchange, gateway, origin), null)
  const line = lineExchange(exchange, gateway, origin)
  const headers = withoutLength(upstream.headers)
  if (upstream.body === null || !isAnswerEvaluated(line)) {
    return await relayBinary(exchange, gateway, upstream, Number.POSITIVE_INFINITY)
  }
  // Room for the longest line that is read.
  await exchange.answerMemory.grow(gateway.settings.body_limit_bytes)
  const body = upstream.body.pipeThrough(new TransformStream(new OutputPolicies(exchange, line, gateway)))
  await relayBinary(exchange, gateway, new Response(body, { headers }), Number.POSITIVE_INFINITY)
}

/** The exchange on which the answers of all lines are judged, one after another. It is never recorded. */
function lineExchange(exchange: Exchange, gateway: Gateway, { family }: BatchOrigin): Exchange {
  const { request, requestId, route, token, tokenHash, workload, model, facts } = exchange
  const dialect = dialects[family]
  const line = beginExchange({ request, connection: null, requestId, route, family, dialect }, gateway)
  line.token = token
  line.tokenHash = tokenHash
  line.workload = workload
  line.model = model
  line.paths = exchange.paths
  line.facts = facts
  line.chain = chainFor(line, gateway, required(model))
  return line
}

class OutputPolicies implements Transformer<Uint8Array, Uint8Array> {
  readonly #exchange: Exchange
  readonly #line: Exchange
  readonly #gateway: Gateway
  readonly #lines: LineReader

  constructor(exchange: Exchange, line: Exchange, gateway: Gateway) {
    this.#exchange = exchange
    this.#line = line
    this.#gateway = gateway
    this.#lines = new LineReader(gateway.settings.body_limit_bytes)
  }

  async transform(bytes: Uint8Array, controller: TransformStreamDefaultController<Uint8Array>): Promise<void> {
    for (const line of this.#lines.push(bytes)) await this.#pass(readOutputLine(line), controller)
  }

  async flush(controller: TransformStreamDefaultController<Uint8Array>): Promise<void> {
    for (const line of this.#lines.end()) await this.#pass(readOutputLine(line), controller)
  }

  async #pass(line: OutputLine | null, controller: TransformStreamDefaultController<Uint8Array>): Promise<void> {
    if (line !== null) controller.enqueue(encoder.encode(`${await this.#judged(line)}\n`))
  }

  async #judged(output: OutputLine): Promise<string> {
    const { text, line } = output
    if (text === null || line === null) {
      return errorLine(output, new Failure('upstream_provider_error', { message: 'This line could not be read' }))
    }
    const { response } = line
    const judged = this.#line
    judged.policyResults.length = 0
    // Digests of what waits for a person are of the line.
    judged.body = encoder.encode(JSON.stringify({ custom_id: output.customId }))
    judged.promptHash = null
    try {
      // Errors may repeat the request. Both are judged, as an answer of the family and as its error.
      const body = bodyOf(line)
      readArgumentsExactly(body, text)
      const changed = await evaluateAnswer(judged, this.#gateway, { status: 200, body })
      if (changed === null) return text
      const whole =
        output.answer === null ? { ...line, ...changed } : { ...line, response: { ...Object(response), body: changed } }
      return withNumbersOf(text, whole)
    } catch (thrown) {
      const failure = withoutWaiting(asFailure(thrown))
      if (failure.verdictan === null && this.#exchange.cut !== null) throw failure
      return errorLine(output, failure)
    } finally {
      addLineResults(this.#exchange, judged)
      judged.grant?.reservation.release()
      judged.grant = null
      judged.verdict = 'allow'
    }
  }
}

/** What policies read of a line: the answer, or all of a line that has none. */
function bodyOf(line: JsonObject): JsonObject {
  const { response } = line
  const body: unknown = Object(response).body
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return { ...body }
  const { id: _id, custom_id: _customId, ...rest } = line
  return rest
}

/** A line as providers write it for a request that failed. */
function errorLine({ customId, line }: OutputLine, { code, message }: Failure): string {
  return JSON.stringify({ id: line?.id ?? null, custom_id: customId, response: null, error: { code, message } })
}

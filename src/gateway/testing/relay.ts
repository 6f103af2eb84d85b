/** One scripted stream through the relay, for the tests of this folder, and an inspection that is easy to follow. */

import type { Failure } from '../../failure.ts'
import type { Dialect, FrameFacts, StreamReader } from '../../languages/dialect.ts'
import { routeOf } from '../../languages/families.ts'
import { systemClock } from '../../lib/clock.ts'
import type { SseFrame } from '../../lib/http/sse.ts'
import { newId } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log/log.ts'
import { noMcpServers } from '../../mcp/no-servers.ts'
import { ToolSearch } from '../../mcp/search/tool-search.ts'
import { EndedSessions } from '../../mcp/surface/ended-sessions.ts'
import { LateServers } from '../../mcp/surface/late-servers.ts'
import { McpSessions } from '../../mcp/surface/sessions.ts'
import { OfferedModels } from '../../providers/catalog/offered-models.ts'
import { PriceBook } from '../../providers/prices/price-book.ts'
import { noTracer } from '../../telemetry/tracer.ts'
import { JwtCallers } from '../../workloads/jwt-callers.ts'
import { interruptedRecord } from '../accounting/exchange-record.ts'
import { createMeter } from '../accounting/metrics.ts'
import { BatchFollower } from '../batches/end/batch-follower.ts'
import { AnswerCache } from '../cache/answer-cache.ts'
import type { Gateway } from '../context.ts'
import { answerFailure } from '../error-response.ts'
import { beginExchange, type Exchange } from '../exchange.ts'
import { createInFlight } from '../in-flight.ts'
import { noSiblings } from '../mcp/sibling-workers.ts'
import type { BeginInspection, Inspected, StreamInspection } from '../policy/inspected-stream.ts'
import { relayStream } from '../response/sse.ts'
import { IntakeLimits } from '../telemetry-intake/intake-limits.ts'
import { Circuits } from '../upstream/circuit.ts'
import { createTestWorker, testMemory, testSettings, testTargets } from './worker.ts'

/** Stops at a word and sends no part of it: text that may become the word is held. */
export class WordInspection implements StreamInspection {
  readonly seen: SseFrame[] = []
  readonly #reader: StreamReader
  readonly #word: string
  readonly #failure: () => Failure
  readonly #held = new Map<string, string>()

  constructor(reader: StreamReader, word: string, failure: () => Failure) {
    this.#reader = reader
    this.#word = word
    this.#failure = failure
  }

  take(frame: SseFrame, facts: FrameFacts | null): Inspected {
    this.seen.push(frame)
    const opened = facts === null ? null : this.#reader.open(frame)
    if (opened === null) return { bytes: frame.bytes, stop: null }
    const before: Uint8Array[] = []
    for (const piece of opened.pieces) {
      if (piece.whole) continue
      const text = (this.#held.get(piece.channel) ?? '') + piece.text
      const found = text.indexOf(this.#word)
      const kept = found < 0 ? this.#tail(text) : text.length - found
      piece.replace(text.slice(0, text.length - kept))
      this.#held.set(piece.channel, text.slice(text.length - kept))
      if (found >= 0) return { bytes: found === 0 ? null : opened.bytes(), stop: this.#failure() }
    }
    for (const channel of opened.ends) before.push(this.#rest(channel))
    return { bytes: Buffer.concat([...before, opened.bytes()]), stop: null }
  }

  end(): Inspected {
    return { bytes: Buffer.concat([...this.#held.keys()].map((channel) => this.#rest(channel))), stop: null }
  }

  #tail(text: string): number {
    for (let length = Math.min(text.length, this.#word.length - 1); length > 0; length--) {
      if (this.#word.startsWith(text.slice(-length))) return length
    }
    return 0
  }

  #rest(channel: string): Uint8Array {
    const rest = this.#held.get(channel) ?? ''
    this.#held.delete(channel)
    return rest === '' ? new Uint8Array(0) : this.#reader.delta(channel, rest)
  }
}

export interface Script {
  chunks: readonly (string | Uint8Array)[]
  inspect?: BeginInspection
  /** The stream stays open after its chunks. */
  open?: boolean
  /** The provider declares where its body ends: in chunks, or by this header. */
  framed?: boolean | Record<string, string>
  prepare?: (exchange: Exchange) => void
}

/** An exchange that was read and opened, with the gateway it runs in. */
export async function prepareExchange(dialect: Dialect, { stream }: { stream: boolean }) {
  const worker = createTestWorker()
  const settings = testSettings({})
  const running = createInFlight(settings, systemClock, () => undefined)
  const meter = createMeter()
  const gateway: Gateway = {
    worker,
    prices: new PriceBook(),
    tokenCounter: { count: async () => null },
    settings,
    intake: { limits: new IntakeLimits(), waiting: 0 },
    fetch,
    clock: systemClock,
    newId,
    log: silentLog,
    meter,
    tracer: noTracer,
    running,
    memory: testMemory(),
    circuits: new Circuits(settings),
    shadows: { prepare: () => undefined },
    cache: new AnswerCache(settings, null, { log: silentLog, now: Date.now, clears: () => new Map() }),
    targets: testTargets(),
    offeredModels: new OfferedModels({ fetch, clock: systemClock, log: silentLog }),
    draining: false,
    jwtCallers: new JwtCallers(),
    batches: new BatchFollower(() => gateway),
    spoolDirectory: '',
    mcp: {
      servers: noMcpServers,
      sessions: new McpSessions({ most: 1, idleMilliseconds: 1, ended: new EndedSessions() }),
      search: new ToolSearch(systemClock),
      late: new LateServers({ recordsChanged: () => undefined }),
      siblings: noSiblings,
    },
  }
  const request = new Request('http://localhost/', { method: 'POST' })
  const beginning = {
    request,
    connection: null,
    requestId: 'request-1',
    route: routeOf(dialect.family),
    family: dialect.family,
  }
  const exchange = beginExchange({ ...beginning, dialect }, gateway)
  exchange.facts = dialect.read({ model: 'm', stream })
  exchange.attempts.push({
    eventId: newId(),
    spanId: null,
    provider: 'upstream',
    model: 'm',
    startedAt: exchange.startedAt,
    startedMonotonic: exchange.startedMonotonic,
    firstByteMs: 0,
    latencyMs: null,
    status: 200,
    reason: 'ok',
  })
  exchange.opened = true
  await worker.journal.open(exchange.id, interruptedRecord(exchange, gateway), 4)
  return { exchange, gateway, worker }
}

/** Relays one scripted stream as a gateway does and returns what the client received. */
export async function relayScript(
  dialect: Dialect,
  { chunks, inspect, open = false, framed = false, prepare }: Script,
) {
  const { exchange, gateway, worker } = await prepareExchange(dialect, { stream: true })
  exchange.beginInspection = inspect ?? null
  prepare?.(exchange)
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(Buffer.from(chunk))
      if (!open) controller.close()
    },
  })
  let answer: Response
  try {
    const framing = framed === true ? { 'transfer-encoding': 'chunked' } : framed || {}
    const headers = { 'content-type': 'text/event-stream', ...framing }
    await relayStream(exchange, gateway, new Response(body, { headers }))
    answer = exchange.answer ?? Response.error()
  } catch (thrown) {
    answer = await answerFailure(exchange, gateway, thrown)
  }
  const text = await answer.text()
  return { answer, text, outcomes: worker.journal.outcomes(), attempts: worker.journal.attempts(), exchange }
}

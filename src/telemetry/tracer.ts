/**
 * Whether an exchange is traced, and where its spans go. Off, it reads one header and nothing else; the exporter is
 * loaded when the first span is to be sent, never at start.
 *
 * Spans wait in a queue of `queueAtMost` and leave in batches, one at a time. A collector that is slow or away costs
 * spans, which are counted, and nothing else: no request waits for it.
 */
import { randomBytes } from 'node:crypto'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log/log.ts'
import type { Span } from './span.ts'
import { parseTraceparent, parseTracestate } from './trace-context.ts'

/** The trace of one exchange. */
export interface ExchangeTrace {
  readonly traceId: string
  readonly parentSpanId: string | null
  /** The exchange's own span; null if the trace is only passed on, because it is not recorded here. */
  readonly spanId: string | null
  /** The caller's `traceparent` as it came; null where the trace begins here. */
  readonly caller: string | null
  /** The caller's `tracestate`; null where it has none that may be passed on. */
  readonly state: string | null
}

/** Where a caller says what trace it belongs to: headers, or the like. */
export interface TraceCarrier {
  get(name: 'traceparent' | 'tracestate'): string | null
}

export interface Tracer {
  /** The trace of a request by what it brings; null where it brings none and begins none. */
  begin(carrier: TraceCarrier): ExchangeTrace | null
  /** A new span's id. */
  newSpanId(): string
  /** Takes finished spans, or drops them. */
  ended(spans: readonly Span[]): void
  readonly counters: { readonly exported: number; readonly dropped: number }
  /** Sends what waits, for at most so long. */
  close(milliseconds: number): Promise<void>
}

/** Sends spans; rejects where they did not arrive, with `SpansRefused` where some did. */
export type SpanExporter = (spans: readonly Span[]) => Promise<void>

/** A collector took spans but for some of them (OTLP, Partial Success). */
export class SpansRefused extends Error {
  readonly count: number

  /** `message`: the collector's own. */
  constructor(count: number, message: string) {
    super(message)
    this.count = count
  }
}

interface TracerOptions {
  /** Loads what sends spans; called when there is something to send, again only where it failed. */
  load(): Promise<SpanExporter>
  /** Of requests that bring no traceparent; those that do go by theirs. */
  samplePercent: number
  /** From 0 up to 1. */
  random(): number
  clock: Pick<Clock, 'monotonic'>
  log: Log
  flushMilliseconds?: number
}

const queueAtMost = 4096
const batchAtMost = 512
const defaultFlushMilliseconds = 2000
/** Some of each batch may be refused for as long as nobody changes it. */
const refusalLogMilliseconds = 600_000

/** The caller's trace, with a span of ours where it is recorded; null where the caller brings none. */
function followed(carrier: TraceCarrier, ownSpanId: () => string | null): ExchangeTrace | null {
  const caller = carrier.get('traceparent')?.trim() ?? null
  const parent = parseTraceparent(caller)
  if (parent === null) return null
  return {
    traceId: parent.traceId,
    parentSpanId: parent.spanId,
    spanId: parent.sampled ? ownSpanId() : null,
    caller,
    state: parseTracestate(carrier.get('tracestate')),
  }
}

/** Records no spans: a caller's trace is told and passed on as it came. */
export const noTracer: Tracer = {
  begin: (carrier) => followed(carrier, unrecorded),
  newSpanId: () => '',
  ended: () => undefined,
  counters: { exported: 0, dropped: 0 },
  close: async () => undefined,
}

export function createTracer({ load, samplePercent, random, clock, log, flushMilliseconds }: TracerOptions): Tracer {
  const counters = { exported: 0, dropped: 0 }
  const waiting: Span[] = []
  let exporter: SpanExporter | null = null
  let sending: Promise<void> | null = null
  let failing = false
  let refusalLogged: number | null = null

  function noteRefused({ count, message }: SpansRefused): void {
    const now = clock.monotonic()
    if (refusalLogged !== null && now - refusalLogged < refusalLogMilliseconds) return
    refusalLogged = now
    log.warn({ spans: count, error: message }, 'The collector refuses spans, which are dropped')
  }

  async function sendBatch(): Promise<void> {
    const batch = waiting.splice(0, batchAtMost)
    try {
      exporter ??= await load()
      await exporter(batch)
      counters.exported += batch.length
      failing = false
    } catch (error) {
      if (error instanceof SpansRefused) {
        const refused = Math.min(error.count, batch.length)
        counters.exported += batch.length - refused
        counters.dropped += refused
        failing = false
        return noteRefused(error)
      }
      counters.dropped += batch.length
      // Once for each time that it stops working, not for each batch.
      if (!failing) log.warn({ error: String(error) }, 'Traces do not reach their collector and are dropped')
      failing = true
    }
  }
  const send = (): Promise<void> => {
    sending ??= sendBatch().finally(() => {
      sending = null
    })
    return sending
  }
  const timer = setInterval(() => {
    if (waiting.length > 0) void send()
  }, flushMilliseconds ?? defaultFlushMilliseconds)
  timer.unref()

  return {
    counters,
    begin(carrier) {
      const trace = followed(carrier, newSpanId)
      if (trace !== null || random() * 100 >= samplePercent) return trace
      return { traceId: newId(16), parentSpanId: null, spanId: newSpanId(), caller: null, state: null }
    },
    newSpanId,
    ended(spans) {
      const room = Math.max(0, queueAtMost - waiting.length)
      waiting.push(...spans.slice(0, room))
      counters.dropped += Math.max(0, spans.length - room)
      if (waiting.length >= batchAtMost) void send()
    },
    async close(milliseconds) {
      clearInterval(timer)
      const all = async () => {
        while (waiting.length > 0 || sending !== null) await send()
      }
      await Promise.race([all(), Bun.sleep(milliseconds)])
    },
  }
}

const newId = (bytes: number): string => randomBytes(bytes).toString('hex')
const newSpanId = (): string => newId(8)
const unrecorded = (): null => null

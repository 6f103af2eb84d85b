/** Sends spans to a collector by OTLP over HTTP in protobuf; its libraries are loaded on first use. */
import type { SpanContext, TraceState } from '@opentelemetry/api'
import type { ReadableSpan } from '@opentelemetry/sdk-trace'
import { z } from 'zod'
import { version } from '../version.ts'
import type { Span } from './span.ts'
import { type SpanExporter, SpansRefused } from './tracer.ts'

interface OtlpOptions {
  /** The collector's address; `/v1/traces` is added where it has no path (OTLP/HTTP, section "Endpoints"). */
  endpoint: string
  /** `name=value,name=value`, as OTEL_EXPORTER_OTLP_HEADERS has it (a secret). */
  headers: string | undefined
  /** What the installation calls itself. */
  environment: string | undefined
}

const timeoutMilliseconds = 5000

export async function loadOtlpExporter({ endpoint, headers, environment }: OtlpOptions): Promise<SpanExporter> {
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-proto')
  const { resourceFromAttributes } = await import('@opentelemetry/resources')
  const exporter = new OTLPTraceExporter({
    url: tracesUrl(endpoint),
    headers: parseHeaders(headers ?? ''),
    timeoutMillis: timeoutMilliseconds,
  })
  const resource = resourceFromAttributes({
    'service.name': 'gatehouse',
    'service.version': version,
    ...(environment !== undefined && { 'deployment.environment.name': environment }),
  })
  const takeRefusal = await listenForRefusals()
  return (spans) =>
    new Promise((resolve, reject) => {
      exporter.export(
        spans.map((span) => readable(span, resource)),
        ({ code, error }) => {
          const refused = takeRefusal()
          if (code !== 0) reject(error ?? new Error('The collector took no spans'))
          else if (refused !== null) reject(refused)
          else resolve()
        },
      )
    })
}

const partialSuccess = z.object({ rejectedSpans: z.number().catch(0), errorMessage: z.string().catch('') })
const longestMessage = 300

/**
 * The exporter tells of a partial success by a line to the library's own log alone, in the tick before it says that it
 * has sent. Gives what takes the last one.
 */
async function listenForRefusals(): Promise<() => SpansRefused | null> {
  const { diag, DiagLogLevel } = await import('@opentelemetry/api')
  let last: SpansRefused | null = null
  const ignore = () => undefined
  const warn = (line: string, said: unknown) => {
    if (!line.startsWith('Received Partial Success') || typeof said !== 'string') return
    const { rejectedSpans, errorMessage } = partialSuccess.parse(JSON.parse(said))
    last = new SpansRefused(rejectedSpans, errorMessage.slice(0, longestMessage))
  }
  const logger = { error: ignore, warn, info: ignore, debug: ignore, verbose: ignore }
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true })
  return () => {
    const taken = last
    last = null
    return taken
  }
}

export function tracesUrl(endpoint: string): string {
  const url = new URL(endpoint)
  if (url.pathname === '/') url.pathname = '/v1/traces'
  return url.href
}

/** Values may be percent-encoded (W3C Baggage, section 3.3.1.3). */
export function parseHeaders(text: string): Record<string, string> {
  const pairs = text.split(',').filter((pair) => pair.includes('='))
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf('=')
      return [pair.slice(0, at).trim(), decodeURIComponent(pair.slice(at + 1).trim())]
    }),
  )
}

const sampledFlag = 1
const kinds = { server: 1, client: 2 } as const
const statusOf = (error: string | null) => (error === null ? { code: 0 } : { code: 2, message: error })

/** A state that is only written out. */
function stateOf(text: string): TraceState {
  const state: TraceState = { serialize: () => text, get: () => undefined, set: () => state, unset: () => state }
  return state
}

function readable(span: Span, resource: ReadableSpan['resource']): ReadableSpan {
  const context = (spanId: string): SpanContext => ({
    traceId: span.traceId,
    spanId,
    traceFlags: sampledFlag,
    ...(span.state !== null && { traceState: stateOf(span.state) }),
  })
  const parent = span.parentSpanId === null ? {} : { parentSpanContext: context(span.parentSpanId) }
  return {
    name: span.name,
    kind: kinds[span.kind],
    spanContext: () => context(span.spanId),
    ...parent,
    startTime: highResolution(span.startedAt),
    endTime: highResolution(span.endedAt),
    duration: highResolution(Math.max(0, span.endedAt - span.startedAt)),
    ended: true,
    status: statusOf(span.error),
    attributes: span.attributes,
    links: [],
    events: [],
    resource,
    instrumentationScope: { name: 'gatehouse', version },
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  }
}

/** Seconds and nanoseconds. */
const highResolution = (milliseconds: number): [number, number] => [
  Math.floor(milliseconds / 1000),
  Math.round((milliseconds % 1000) * 1_000_000),
]

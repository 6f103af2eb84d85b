/**
 * `POST /v1/metrics`, `/v1/logs` and `/v1/traces`: telemetry of clients by OTLP over HTTP, in protobuf or JSON. The
 * token is checked as for a model, the resources get attributes that say whose token it was (`attribution.ts`), and the
 * export goes to the installation's collector.
 *
 *   - An export has at most 4 MiB, also unpacked; what a token may send in a minute says `intake-limits.ts`; 16 exports
 *     wait for the collector at once; each waits 10 s at most.
 *   - A refusal is recorded like any other. An export that was taken is counted in the metrics, and has no event of its
 *     own: there would be more of them than of requests.
 *   - Nothing of an export is read, kept or logged but the names of its resources' attributes. Policies do not look at
 *     it: it goes to the operator's own collector, and to no provider.
 *
 * Errors have the form of OTLP (google.rpc.Status), in JSON for both encodings.
 */
import { Failure } from '../../failure.ts'
import type { Dialect } from '../../languages/dialect.ts'
import { messages } from '../../languages/messages/dialect.ts'
import { parseHeaders } from '../../telemetry/otlp.ts'
import { checkLive } from '../admission/authenticate.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'
import { readBody } from '../request/read-body.ts'
import { readBounded } from '../request/read-with-limit.ts'
import { attributedJson } from './attributed-json.ts'
import { attributedProtobuf } from './attributed-protobuf.ts'
import { attributionOf, type Signal } from './attribution.ts'

export const intakePath = (signal: Signal): string => `/v1/${signal}`

export const intakeBytes = 4 * 1024 * 1024
const mostWaiting = 16
const collectorMilliseconds = 10_000
/** A collector's answer says how much of an export it did not take. */
const answerBytes = 64 * 1024

/** google.rpc.Code of the statuses that are answered here. */
const codes: Readonly<Record<number, number>> = {
  400: 3,
  401: 16,
  403: 7,
  408: 4,
  413: 3,
  415: 3,
  429: 8,
  501: 12,
  503: 14,
}
const unknown = 2

/** The dialect of OTLP: no request to a model has it. */
export const telemetry: Dialect = {
  ...messages,
  errorBody: ({ status, code, message }) => ({ code: codes[status] ?? unknown, message, reason: code }),
}

/** Takes the export of a signal. */
export const takeTelemetry =
  (signal: Signal) =>
  async (exchange: Exchange, gateway: Gateway): Promise<void> => {
    const { settings, clock, intake, worker } = gateway
    const { otlp_endpoint: endpoint } = settings
    if (endpoint === undefined) throw new Failure('telemetry_not_configured')
    const type = typeOf(exchange.contentType)
    exchange.bodyDeadline = clock.monotonic() + 1000 * settings.body_timeout_seconds
    const bytes = await readBody(exchange, intakeBytes)
    exchange.bodyDeadline = null
    exchange.onCut = null
    checkLive(exchange, gateway)
    const token = required(exchange.token)
    intake.limits.take(token.id, bytes.length, clock.monotonic())
    const attribution = attributionOf(token, worker.status.gatewayId)
    const body = type === json ? attributedJson(bytes, signal, attribution) : attributedProtobuf(bytes, attribution)
    if (intake.waiting >= mostWaiting) throw new Failure('telemetry_unavailable', { message: tooMany })
    intake.waiting += 1
    try {
      exchange.answer = await forward(gateway, { endpoint, signal, type, body, requestId: exchange.requestId })
    } finally {
      intake.waiting -= 1
    }
    gateway.meter.telemetry(signal, bytes.length)
  }

const tooMany = 'Too much telemetry waits for the collector: try again'
const json = 'application/json'
const protobuf = 'application/x-protobuf'

function typeOf(contentType: string): typeof json | typeof protobuf {
  const [type = ''] = contentType.toLowerCase().split(';')
  if (type.trim() === json) return json
  if (type.trim() === protobuf) return protobuf
  throw new Failure('unsupported_media_type', { message: `Send the body as ${protobuf} or ${json}` })
}

interface Export {
  endpoint: string
  signal: Signal
  type: string
  body: Uint8Array
  requestId: string
}

/** What the collector says of what the client sent; whatever else it says is the operator's to mend. */
const ofClient: ReadonlySet<number> = new Set([400, 413, 415, 422])

async function forward(gateway: Gateway, { endpoint, signal, type, body, requestId }: Export): Promise<Response> {
  const answer = await send(gateway, { endpoint, signal, type, body })
  if (answer.ok) {
    const said = answer.body === null ? new Uint8Array() : await readBounded(answer.body.getReader(), answerBytes)
    const headers = { 'content-type': answer.headers.get('content-type') ?? type, 'x-request-id': requestId }
    return new Response(said, { headers })
  }
  await answer.body?.cancel()
  if (ofClient.has(answer.status)) throw new Failure('telemetry_refused')
  gateway.log.warn({ signal, status: answer.status }, 'The collector did not take telemetry of a client')
  throw new Failure('telemetry_unavailable')
}

async function send({ fetch, settings }: Gateway, { endpoint, signal, type, body }: Omit<Export, 'requestId'>) {
  try {
    return await fetch(signalUrl(endpoint, signal), {
      method: 'POST',
      headers: { ...parseHeaders(settings.otlp_headers ?? ''), 'content-type': type },
      body,
      redirect: 'manual',
      signal: AbortSignal.timeout(collectorMilliseconds),
    })
  } catch (thrown) {
    throw new Failure('telemetry_unavailable', { cause: thrown })
  }
}

/**
 * Where a signal goes: the address for traces with the name of the signal in the place of `traces`, or with
 * `/v1/<signal>` added to another path (OTLP specification, "OTLP/HTTP").
 */
export function signalUrl(endpoint: string, signal: Signal): string {
  const url = new URL(endpoint)
  const path = url.pathname.replace(/\/$/, '')
  url.pathname = path.endsWith('/v1/traces') ? path.replace(/traces$/, signal) : `${path}/v1/${signal}`
  return url.href
}

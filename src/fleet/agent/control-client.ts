/** The calls of a gateway to its control plane (fleet/protocol/wire.ts), over fetch. Every error is a Failure. */
import type { z } from 'zod'
import { Failure, type FailureCode, failures } from '../../failure.ts'
import { callFailure } from '../../lib/http/call-failure.ts'
import type { OfferReport } from '../../mcp/offers/offer-report.ts'
import {
  type PersonTokenReply,
  type PersonTokenRequest,
  personTokenReplySchema,
} from '../../mcp/personal/person-token.ts'
import type { Fetch } from '../../providers/provider.ts'
import {
  type BatchesReply,
  type BatchUse,
  batchesReplySchema,
  type ObjectsQuery,
  type ObjectsReply,
  objectsReplySchema,
} from '../../usage/batches/batch-protocol.ts'
import { answerWithinMs, type LeaseRequest } from '../../usage/lease/lease.ts'
import { type SlotBalance, type SlotsReply, slotsReplySchema } from '../../usage/rate/rate-protocol.ts'
import {
  type BootstrapReply,
  bootstrapReplySchema,
  credentialReplySchema,
  eventsReplySchema,
  type HeartbeatReply,
  heartbeatReplySchema,
  type LeasesReply,
  leasesReplySchema,
  revocationsReplySchema,
  revocationsRequestSchema,
  type StreamQuery,
  streamIdHeader,
  workerHeader,
} from '../protocol/wire.ts'

const path = '/v1/gateway-runtime'
const bootstrapMs = 10_000
/** One starts each second. An answer of this age still counts, so as many may be in flight. */
const heartbeatMs = 10_000
const eventsMs = 15_000
const slotsMs = 3000
const credentialMs = 5000
const revocationsMs = 15_000
const deregisterTimeoutMs = 1000
const offersMs = 15_000
/** A refresh at an authorization server may be part of it. */
const personTokenMs = 35_000
const batchesMs = 15_000

export interface Heartbeat {
  worker: number
  stream_id: string
  acknowledged_version: number
  history: string
  nonce: string
  stale_after_ms?: number
}

export interface ControlClient {
  bootstrap(
    runtimeToken: string,
    body: { instance_id: string; version: string; workers: number },
  ): Promise<BootstrapReply>
  /** The body of the change stream. */
  stream(session: string, query: StreamQuery, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>
  heartbeat(session: string, body: Heartbeat): Promise<HeartbeatReply>
  slots(
    session: string,
    body: { worker: number; stream_id: string; balances: readonly SlotBalance[] },
  ): Promise<SlotsReply>
  events(
    session: string,
    worker: number,
    streamId: string,
    lines: Buffer<ArrayBuffer>,
  ): Promise<{ seq: number; digest: string }>
  deregister(session: string, body: { worker: number; stream_id: string }): Promise<void>
  leases(session: string, worker: number, streamId: string, request: LeaseRequest): Promise<LeasesReply>
  mcpOffers(session: string, report: OfferReport): Promise<void>
  personToken(session: string, request: PersonTokenRequest): Promise<PersonTokenReply>
  batches(
    session: string,
    body: { worker: number; stream_id: string; settled: readonly BatchUse[] },
  ): Promise<BatchesReply>
  batchObjects(session: string, body: ObjectsQuery & { worker: number; stream_id: string }): Promise<ObjectsReply>
  /** Where the state is, with a new read credential. */
  credential(session: string): Promise<z.infer<typeof credentialReplySchema>>
  /** Reports revocations that a restored primary may have lost. Resolves when the tokens are refused again. */
  revocations(
    session: string,
    body: z.infer<typeof revocationsRequestSchema>,
  ): Promise<z.infer<typeof revocationsReplySchema>>
}

/** Whether nothing that is sent there crosses a network unencrypted. */
export function isPrivate(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  const loopback = hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname)
  return protocol === 'https:' || (protocol === 'http:' && (loopback || hostname.endsWith('.localhost')))
}

/**
 * Throws `invalid_parameter` if secrets would cross a network unencrypted: plain http is allowed only for a control
 * plane on this host (fleet/README.md, Trust).
 */
export function controlClient(apiUrl: string, fetch: Fetch): ControlClient {
  const { origin } = new URL(apiUrl)
  if (!isPrivate(apiUrl)) {
    throw new Failure('invalid_parameter', {
      message: 'The control plane must be reached over https, unless it is on this host',
      param: 'api_url',
    })
  }
  const post = async (
    call: string,
    token: string,
    body: string | Buffer<ArrayBuffer>,
    timeout: number,
    headers: Record<string, string>,
  ) => {
    const response = await reach(() =>
      fetch(`${origin}${path}/${call}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
        body,
        signal: AbortSignal.timeout(timeout),
      }),
    )
    return reach(async (): Promise<unknown> => response.json())
  }
  return {
    bootstrap: async (token, body) =>
      bootstrapReplySchema.parse(await post('bootstrap', token, JSON.stringify(body), bootstrapMs, {})),
    async stream(session, query, signal) {
      const headers = { authorization: `Bearer ${session}`, accept: 'text/event-stream' }
      const said = new URLSearchParams()
      for (const [name, value] of Object.entries(query)) {
        if (value !== undefined) said.set(name, typeof value === 'object' ? JSON.stringify(value) : String(value))
      }
      const { body } = await reach(() => fetch(`${origin}${path}/stream?${said}`, { headers, signal }))
      if (body === null) throw new Failure('dependency_unavailable')
      return body
    },
    heartbeat: async (session, body) =>
      heartbeatReplySchema.parse(await post('heartbeat', session, JSON.stringify(body), heartbeatMs, {})),
    slots: async (session, body) =>
      slotsReplySchema.parse(await post('slots', session, JSON.stringify(body), slotsMs, {})),
    events: async (session, worker, streamId, lines) =>
      eventsReplySchema.parse(
        await post('events', session, lines, eventsMs, {
          'content-type': 'application/x-ndjson',
          'content-encoding': 'zstd',
          [workerHeader]: String(worker),
          [streamIdHeader]: streamId,
        }),
      ),
    async deregister(session, body) {
      await post('deregister', session, JSON.stringify(body), deregisterTimeoutMs, {})
    },
    leases: async (session, worker, streamId, request) => {
      const body = JSON.stringify({ worker, stream_id: streamId, ...request })
      return leasesReplySchema.parse(await post('leases', session, body, answerWithinMs(request), {}))
    },
    async mcpOffers(session, report) {
      await post('mcp-offers', session, JSON.stringify(report), offersMs, {})
    },
    personToken: async (session, request) =>
      personTokenReplySchema.parse(await post('person-tokens', session, JSON.stringify(request), personTokenMs, {})),
    batches: async (session, body) =>
      batchesReplySchema.parse(await post('batches', session, JSON.stringify(body), batchesMs, {})),
    batchObjects: async (session, body) =>
      objectsReplySchema.parse(await post('batch-objects', session, JSON.stringify(body), batchesMs, {})),
    credential: async (session) =>
      credentialReplySchema.parse(await post('credential', session, '{}', credentialMs, {})),
    revocations: async (session, body) =>
      revocationsReplySchema.parse(
        await post('revocations', session, JSON.stringify(revocationsRequestSchema.parse(body)), revocationsMs, {}),
      ),
  }
}

/** Returns the result of a call, or throws a Failure with the code that the answer names. */
async function reach<Result>(call: () => Promise<Result>): Promise<Result> {
  let result: Result
  try {
    result = await call()
  } catch (error) {
    const message = `The control plane cannot be reached: ${callFailure(error, 'it does not answer in time')}`
    throw new Failure('dependency_unavailable', { message, cause: error })
  }
  if (result instanceof Response && !result.ok) {
    const text = await result.text().catch(() => '')
    const code = /"code"\s*:\s*"([^"]+)"/.exec(text)?.[1] ?? ''
    const words = /"message"\s*:\s*"([^"\\]{1,300})"/.exec(text)?.[1] ?? ''
    const said = [code, words].filter((part) => part !== '').join(': ')
    const message = `The control plane answered ${result.status}${said === '' ? '' : ` ${said}`}`
    throw new Failure(isCode(code) ? code : 'dependency_unavailable', { message })
  }
  return result
}

const isCode = (code: string): code is FailureCode => Object.hasOwn(failures, code)

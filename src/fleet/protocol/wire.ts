/**
 * The protocol between gateways and control planes (fleet/README.md):
 *
 *  POST /v1/gateway-runtime/bootstrap    runtime token      → session credential, keys, limits, where the state is
 *  GET  /v1/gateway-runtime/stream       session, ?worker=n → SSE: handshake, change, fenced, slots, recall
 *  POST /v1/gateway-runtime/heartbeat    session            → freshness; carries the acknowledged version
 *  POST /v1/gateway-runtime/events       session            → compressed records of a chain, answered after commit
 *  POST /v1/gateway-runtime/slots        session            → slots of limits a minute (usage/rate/rate-protocol.ts)
 *  POST /v1/gateway-runtime/leases       session            → shares of limits: asks, returns, grants, refusals
 *  POST /v1/gateway-runtime/batches      session            → batches to follow; takes what those that ended have used
 *  POST /v1/gateway-runtime/batch-objects session           → which files and batches an owner has made
 *  POST /v1/gateway-runtime/credential   session            → a read credential for the state, as in bootstrap
 *  POST /v1/gateway-runtime/revocations  session            → revocations of a worker that a restored primary lost
 *  POST /v1/gateway-runtime/mcp-offers   session            → what MCP servers offer (mcp/offers/offer-report.ts)
 *  POST /v1/gateway-runtime/person-tokens session           → the token of a caller's own account (mcp/personal/person-token.ts)
 *  POST /v1/gateway-runtime/deregister   session            → the worker serves no more
 *
 * A worker is `gateway_id/instance_id/n`. Opening a worker's stream takes the worker over: its former owner gets 409
 * `worker_fenced` from then on. `stream_id` identifies the owning stream and is part of every heartbeat and batch.
 */

import { z } from 'zod'
import { blockRecords } from '../../events/log/segment.ts'
import { headSchema } from '../../store/propagation.ts'

export const bootstrapRequestSchema = z.strictObject({
  instance_id: z.uuid(),
  version: z.string().max(64),
  workers: z.number().int().min(1).max(64),
})

/** Where a database is read, with a credential that only reads it (fleet/README.md, Trust). */
export const replicaSourceSchema = z.object({
  kind: z.literal('replica'),
  url: z.string().describe('https://, or http:// on loopback; where its server has namespaces, the host names one'),
  token: z.string(),
  expires_at: z.iso.datetime().nullable().describe('Null: it holds until the installation gives another'),
})

export const stateSourceSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('file') }).describe('The state is a file on this host that another process keeps'),
  replicaSourceSchema,
])
export const credentialReplySchema = z.object({ state: stateSourceSchema, now: z.iso.datetime() })

export const bootstrapReplySchema = z.object({
  session: z.object({ token: z.string(), expires_at: z.iso.datetime() }),
  organization_id: z.uuid(),
  gateway: z.object({ id: z.uuid(), name: z.string() }),
  head: headSchema,
  state: stateSourceSchema,
  max_staleness_seconds: z.number(),
  provider_keys: z.record(z.uuid(), z.string()).describe('Id of a provider or MCP server → its data key, base64'),
  prompt_hash_key: z.object({ id: z.string(), key: z.string() }),
  base_url: z.string(),
  gateway_url: z.string(),
  now: z.iso.datetime(),
})
export type BootstrapReply = z.infer<typeof bootstrapReplySchema>

/** The minimum staleness limit, even in strict mode: the time for which a worker counts as connected. */
const minStalenessMs = 3000
/**
 * How long a worker may serve after it was last fresh. Both sides must compute the same. A lower setting applies with
 * any answer, and the worker reports it once it holds after a restart too. A higher one applies only with a handshake,
 * after the row was written. So the row is never lower than the worker's own value.
 */
export const staleAfterMs = (maxStalenessSeconds: number): number =>
  Math.max(minStalenessMs, maxStalenessSeconds * 1000)

/** How often the control plane writes a comment into a quiet stream, and after what silence a worker reopens it. */
export const streamCommentMs = 5000
export const streamSilenceMs = 3 * streamCommentMs

const chainHeadSchema = z.object({ seq: z.number().int(), digest: z.string() })
export type ChainHead = z.infer<typeof chainHeadSchema>
/**
 * The ledger's head of a worker's chain, with earlier points at growing distances, to find where two chains diverge.
 */
const announcedHeadSchema = chainHeadSchema.extend({ earlier: z.array(chainHeadSchema).default([]) })
export type AnnouncedHead = z.infer<typeof announcedHeadSchema>

/** The ledger's transaction counts, which reveal an older copy (usage/lease/ledger-epoch.ts). */
const ledgerEpochSchema = z.array(z.object({ writer: z.string().max(64), written: z.number().int().min(0) })).max(1000)
const parseLedgerEpoch = (text: unknown): unknown => {
  try {
    return JSON.parse(String(text))
  } catch {
    // Invalid JSON is refused by the schema.
    return undefined
  }
}

/**
 * A worker's query when it opens its stream: its process, and when that last took the worker over. If another process
 * took it since, that one keeps it. A ledger without such a recent takeover was restored from an older copy.
 */
const servesFor = z.coerce.number().int().min(0).max(86_400_000)
export const streamQuerySchema = z.strictObject({
  worker: z.coerce.number().int().min(0).max(63),
  process: z.uuid().optional(),
  since: z.coerce.number().int().optional(),
  acknowledged: z.coerce.number().int().min(0).optional().describe('The last of its events that the ledger had'),
  ledger_epoch: z
    .preprocess(parseLedgerEpoch, ledgerEpochSchema)
    .optional()
    .describe('From the replies to heartbeats and lease messages'),
  stale_after_ms: servesFor.optional().describe('For how long it serves without news'),
})
export type StreamQuery = z.infer<typeof streamQuerySchema>

/** The stream's SSE events. The SSE `event:` field equals `kind`. */
export const handshakeSchema = z.object({
  kind: z.literal('handshake'),
  stream_id: z.uuid(),
  taken_at: z.number().int().describe('When the worker was taken by this stream, in the time of the ledger'),
  head: headSchema,
  events: announcedHeadSchema.describe("The ledger's head of this worker's chain"),
  max_staleness_seconds: z.number().optional().describe('Written down before: the worker may serve for longer by it'),
  now: z.iso.datetime(),
})
export const changeSchema = z.object({
  kind: z.literal('change'),
  head: headSchema,
  since: z.number().int().describe('All revocations of versions above this one, up to the head, are in `revoked`'),
  revoked: z.array(z.string()).describe('Hashes of tokens to refuse until the state read is at this version'),
  end_requests: z.array(z.string()).default([]).describe('Those of them whose running requests end at once'),
  only_revocations: z
    .boolean()
    .default(false)
    .describe('Whether nothing else has changed, so that reading the state may wait'),
})
export const fencedSchema = z.object({ kind: z.literal('fenced') })
/** Another worker needs slots of an account: return the cold ones (usage/rate/rate.ts). */
export const slotsRecallSchema = z.object({
  kind: z.literal('slots'),
  account: z.string(),
  want: z.number().int(),
  at: z.number().int().describe('Names the call; the worker says it again when it has followed'),
})
export const recallSchema = z.object({
  kind: z.literal('recall'),
  accounts: z.array(z.string()).describe('What is not open of these is wanted back; their limits may have changed'),
})
export const streamMessageSchema = z.discriminatedUnion('kind', [
  handshakeSchema,
  changeSchema,
  fencedSchema,
  slotsRecallSchema,
  recallSchema,
])
export type StreamMessage = z.infer<typeof streamMessageSchema>

const count = z.number().int().min(0)

/** What a worker measured of a target, a model at a provider (gateway/upstream/targets/README.md). */
export const targetHealthSchema = z.object({
  provider: z.string(),
  model: z.string().describe('As the catalog lists it; * stands for all models that it does not list'),
  upstream_model: z.string(),
  calls: count.describe("Since the worker's start"),
  errors: count.describe("Failed calls since the worker's start"),
  error_ratio: z.number().describe('The share of the last 64 calls that failed, from 0 to 1'),
  in_flight: z.number().int(),
  first_byte_p50_ms: z.number().nullable().describe('Of the last 64 calls; null without an answer'),
  first_byte_p95_ms: z.number().nullable(),
  circuit_open: z.boolean().describe('Whether it is passed over after failures'),
  keys: count.describe('How many keys of the provider the worker uses'),
  keys_resting: count.describe('How many of them are passed over after a refusal or near their rate limit'),
  last_error: z
    .object({ at: z.iso.datetime(), reason: z.string(), status: z.number().int().nullable() })
    .nullable()
    .describe("The reason code and the HTTP status of the last failed call; no text of the provider's"),
})
export type TargetHealth = z.infer<typeof targetHealthSchema>

/** The most targets of one heartbeat: of more, those called most. */
export const reportedTargets = 200

export const heartbeatRequestSchema = z.strictObject({
  worker: z.number().int(),
  stream_id: z.uuid(),
  acknowledged_version: z.number().int().describe('All revocations up to this version are durable on the worker'),
  history: z.string().describe('The history that the acknowledged version is of'),
  nonce: z.string().describe("The nonce of the acknowledged version's head; empty where the worker does not know it"),
  stale_after_ms: servesFor.optional().describe('For how long it serves without news, also over a restart'),
  targets: z.array(targetHealthSchema).max(reportedTargets).optional().describe('Every few seconds'),
})
export const heartbeatReplySchema = z.object({
  head: headSchema,
  history: z
    .enum(['known', 'unknown'])
    .describe('Unknown: the acknowledged version and nonce are not of this primary, which was restored or replaced'),
  fresh: z.boolean().describe('Whether the primary was read within the last second'),
  max_staleness_seconds: z.number().optional().describe('Counts where it is less than the worker has'),
  ledger_epoch: ledgerEpochSchema.default([]),
  now: z.iso.datetime(),
})
export type HeartbeatReply = z.infer<typeof heartbeatReplySchema>

/**
 * A worker whose history is unknown reports its revocations before it drops its replica (fleet/README.md rule R1).
 * Tokens that the restored state has in an earlier version are revoked again. Sent in batches; an answer means that
 * its batch is durable.
 */
export const revocationBatchLimit = 1000
export const revocationsRequestSchema = z.strictObject({
  worker: z.number().int(),
  stream_id: z.uuid(),
  history: z.string().describe('The history that the versions are of'),
  revocations: z
    .array(z.strictObject({ version: z.number().int().min(1), hash: z.string().regex(/^[0-9a-f]{64}$/) }))
    .max(revocationBatchLimit),
})
export const revocationsReplySchema = z.object({
  head: headSchema,
  revoked: z.number().int().describe('How many of the tokens had come back to life'),
})

/** A worker that has drained and shipped everything: it holds nothing, and nothing waits for it. */
export const deregisterRequestSchema = z.strictObject({ worker: z.number().int(), stream_id: z.uuid() })
export const deregisterReplySchema = z.object({ now: z.iso.datetime() })

/**
 * The most records of a batch: four full blocks of the log, so that a busy gateway fills blocks, and the transaction of
 * a batch holds the ledger and its process for a few milliseconds.
 */
export const eventBatchLimit = 4 * blockRecords
/** The most bytes of a batch, compressed and not. */
export const eventBatchBytes = 4 * 1024 * 1024

/**
 * The first line of a batch, with exactly this spacing and order. The records follow, one a line, as the exact texts
 * that the chain covers. `first` is the number of the first in the chain, `digest` the chain's after the last. A batch
 * is sent with `content-encoding: zstd`; an empty body asks for the head.
 */
export const batchHead = (first: number, records: number, digest: string): string =>
  `{"first":${first},"records":${records},"digest":"${digest}"}\n`
/** What `batchHead` writes. */
export const batchHeadForm = /^\{"first":([1-9]\d{0,14}),"records":([1-9]\d{0,4}),"digest":"([0-9a-f]{64})"\}$/

export const eventsReplySchema = chainHeadSchema

const amount = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER)
const accountName = z.string().max(128)
const balanceTotals = z.object({
  account: accountName,
  rounds: amount,
  granted: amount,
  returned: amount,
  settled: amount,
})

const requestedAmount = z.number().min(0)
/** Each is answered by itself: a malformed one becomes one that cannot be granted. */
const grantRequest = z
  .strictObject({
    account: z.string(),
    want: requestedAmount,
    min: requestedAmount,
    waited: z.number(),
    wait: z.number(),
    near_limit: z.boolean(),
  })
  .catch(({ input }) => {
    const account = z.looseObject({ account: accountName }).safeParse(input).data?.account ?? ''
    return {
      account,
      want: Number.POSITIVE_INFINITY,
      min: Number.POSITIVE_INFINITY,
      waited: 0,
      wait: 0,
      near_limit: false,
    }
  })

/** usage/lease/lease.ts describes these fields. */
export const leasesRequestSchema = z.strictObject({
  worker: z.number().int(),
  stream_id: z.uuid(),
  process: z.uuid(),
  number: amount,
  registration: z.strictObject({ through: amount, counted: amount, crashed: z.boolean() }).nullable(),
  grant_requests: z.array(grantRequest),
  balances: z.array(balanceTotals.extend({ open: amount })),
})
export const leasesReplySchema = z.object({
  registration: z.enum(['done', 'behind', 'needed']).nullable(),
  balances: z.array(balanceTotals).readonly(),
  grants: z
    .array(
      z.object({
        account: accountName,
        booked: accountName,
        near_limit: z.boolean(),
        partial: z.boolean(),
        until: z.number().nullable(),
      }),
    )
    .readonly(),
  refusals: z
    .array(
      z.object({
        account: z.string(),
        reason: z.enum(['exhausted', 'short', 'held', 'unknown', 'too_many_values']),
        retry_after: z.number().nullable(),
        left: z.number().nullable(),
        until: z.number().nullable(),
      }),
    )
    .readonly(),
  deferred: z.array(accountName).readonly(),
  ledger_epoch: ledgerEpochSchema.optional().describe('With grants: a ledger that has less has lost them'),
})
export type LeasesReply = z.infer<typeof leasesReplySchema>

export const workerHeader = 'x-gatehouse-worker'
export const streamIdHeader = 'x-gatehouse-stream-id'

export const workerName = (gatewayId: string, instanceId: string, worker: number): string =>
  `${gatewayId}/${instanceId}/${worker}`

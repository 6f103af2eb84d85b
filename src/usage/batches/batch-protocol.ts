/**
 * What gateways and the control plane tell each other about batches (usage/batches/README.md). The outcome of the
 * request that made a batch describes it in `details.batch`. Later a gateway asks for the batches that it is to follow,
 * and says what those that ended have cost.
 */
import { z } from 'zod'

/** A batch as the outcome of the request that made it describes it. */
export const madeBatchSchema = z.object({
  id: z.string().max(512).describe("The provider's own id"),
  provider_id: z.string().max(64),
  provider: z.string().max(200),
  model: z.string().max(300),
  upstream_model: z.string().max(300),
  family: z.string().max(40),
  lines: z.number().int().min(1),
  bound: z.number().int().nullable().describe('The most that all lines can cost, in nano-dollars; null if unknown'),
  spend_owner: z.string().max(100).nullable(),
})
export type MadeBatch = z.infer<typeof madeBatchSchema>

/** A batch that is not settled. `hold` is the id of the exchange that made it. */
export const openBatchSchema = madeBatchSchema.extend({ hold: z.string(), created_at: z.number().int() })

export type OpenBatch = z.infer<typeof openBatchSchema>

const count = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER)

/** What a batch used, once it ended. */
export const batchUseSchema = z.strictObject({
  hold: z.uuid(),
  status: z.string().max(40).describe('How the batch ended, in the words of the provider, or `unknown`'),
  requests: count.describe('Lines that the provider answered'),
  cost: count.nullable().describe('Nano-dollars; null where the model has no price'),
  whole: z.boolean().describe('Nobody knows what it used: all that it holds stays charged'),
  estimated: z.boolean(),
  input_tokens: count,
  output_tokens: count,
  cached_input_tokens: count,
  reasoning_tokens: count,
  price_source: z.string().max(200).nullable(),
  notes: z.array(z.string().max(100)).max(10),
})
export type BatchUse = z.infer<typeof batchUseSchema>

export const mostAtOnce = 100

export const batchesRequestSchema = z.strictObject({
  worker: z.number().int(),
  stream_id: z.uuid(),
  settled: z.array(batchUseSchema).max(mostAtOnce),
})

export const batchesReplySchema = z.object({
  open: z.array(openBatchSchema).max(mostAtOnce).describe('Those that this worker is to follow'),
  settled: z.array(z.string()).describe('Those of the request that are settled, now or since earlier'),
})
export type BatchesReply = z.infer<typeof batchesReplySchema>

/** A file or a batch that a request made, as its outcome describes it in `details.made`. */
export const madeObjectSchema = z.object({
  kind: z.enum(['file', 'batch']),
  owner: z.string().max(100).describe('`team/<id>` or `user/<id>`'),
  place: z.array(z.string().max(600)).max(12).describe('What its sealed id holds'),
})
export type MadeObject = z.infer<typeof madeObjectSchema>

export const objectsRequestSchema = z.strictObject({
  worker: z.number().int(),
  stream_id: z.uuid(),
  kind: madeObjectSchema.shape.kind,
  owner: madeObjectSchema.shape.owner,
  after: madeObjectSchema.shape.place.nullable().describe('The place of the last object that the caller has'),
  limit: z.number().int().min(1).max(mostAtOnce),
})
export type ObjectsQuery = Omit<z.infer<typeof objectsRequestSchema>, 'worker' | 'stream_id'>

export const objectsReplySchema = z.object({
  places: z.array(madeObjectSchema.shape.place).describe('The latest first'),
  has_more: z.boolean(),
})
export type ObjectsReply = z.infer<typeof objectsReplySchema>

/** What a gateway asks of its control plane about batches. */
export interface BatchLedger {
  /**
   * Says what batches used that ended, and asks which ones to follow. Rejects if the control plane is out of reach;
   * then it is said again. A batch whose making the ledger has not heard of yet is not among the settled ones.
   */
  sync(settled: readonly BatchUse[]): Promise<BatchesReply>
  /** The files or batches of an owner that were made in the last 30 days, by a page. */
  list(query: ObjectsQuery): Promise<ObjectsReply>
}

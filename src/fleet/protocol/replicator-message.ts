/** What a gateway and its replicator say to each other, over the channel between the two processes and nowhere else. */
import { z } from 'zod'
import { headSchema } from '../../store/propagation.ts'

/** The gateway's: which replica to open, once; then how new it must be at the least. */
export const replicatorOrderSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('open'),
    file: z.string(),
    /** The forwarder's address and this start's secret. */
    url: z.string(),
    secret: z.string(),
    /** Where the native addon is placed. */
    dataDirectory: z.string(),
    /** The replica is not new: it is checked before it is brought on. */
    check: z.boolean(),
  }),
  z.object({ kind: z.literal('sync') }),
])
export type ReplicatorOrder = z.infer<typeof replicatorOrderSchema>

/** The replicator's. `alive` comes every few seconds that it does not spend in native code. */
export const replicatorReportSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('alive') }),
  z.object({ kind: z.literal('synced'), head: headSchema, frame: z.number().nullable() }),
  z.object({ kind: z.literal('failed'), reason: z.string(), damaged: z.boolean() }),
])
export type ReplicatorReport = z.infer<typeof replicatorReportSchema>

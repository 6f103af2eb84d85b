/** Messages between a gateway and its replicator, over the channel between the two processes. */
import { z } from 'zod'
import { headSchema } from '../../store/propagation.ts'

/** Orders of the gateway: which replica to open, once, and then the version it must reach. */
export const replicatorOrderSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('open'),
    file: z.string(),
    /** The forwarder's address and the secret of this start. */
    url: z.string(),
    secret: z.string(),
    /** Where the native addon is placed. */
    dataDirectory: z.string(),
    /** The replica exists: check it before syncing. */
    check: z.boolean(),
  }),
  z.object({ kind: z.literal('sync') }),
])
export type ReplicatorOrder = z.infer<typeof replicatorOrderSchema>

/** Reports of the replicator. `alive` comes every few seconds, except during native calls. */
export const replicatorReportSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('alive') }),
  z.object({ kind: z.literal('synced'), head: headSchema, frame: z.number().nullable() }),
  z.object({ kind: z.literal('failed'), reason: z.string(), damaged: z.boolean() }),
])
export type ReplicatorReport = z.infer<typeof replicatorReportSchema>

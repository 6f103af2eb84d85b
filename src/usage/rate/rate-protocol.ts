/**
 * The messages about slots (rate.ts): `POST /v1/gateway-runtime/slots`. A balance carries the worker's totals and how
 * many more it wants; the reply carries the ledger's totals.
 */
import { z } from 'zod'

const total = z.number().int().min(0)
/** A minute in steps of a second. */
const coolingSteps = 64
const cooling = z.array(z.tuple([z.number().int().min(0), total])).max(coolingSteps)

export const slotBalanceSchema = z.strictObject({
  account: z.string().max(128),
  granted: total,
  returned: total,
  want: total.describe('How many slots the waiting requests need more'),
  recalled_at: total.describe(
    'The last call for slots of this account that the worker has followed; 0 where there was none',
  ),
  cooling: cooling.nullable().describe('In how many milliseconds how many slots in use are cold; null if not reported'),
  resting: cooling.describe(
    'Uses of slots that are returned, or that a former process of the worker held: in how many milliseconds how many are cold',
  ),
  process: z.string().max(64).describe('Names the process of the worker'),
  run: total.describe('Grows with each process of the worker'),
  known_from: total.describe('The first run of which the worker knows all uses'),
})
export type SlotBalance = z.infer<typeof slotBalanceSchema>

export const slotsRequestSchema = z.strictObject({
  worker: z.number().int(),
  stream_id: z.uuid(),
  balances: z.array(slotBalanceSchema).min(1).max(500),
})

export const slotsReplySchema = z.object({
  balances: z.array(
    z.object({
      account: z.string(),
      granted: total,
      returned: total,
      cooling: z
        .array(z.tuple([z.number().int().min(0), total]))
        .describe(
          'Where less was granted than wanted: in how many milliseconds how many slots more can be had, of all workers',
        ),
      absent: total.describe('Where less was granted than wanted: slots held by workers that do not answer'),
    }),
  ),
})
export type SlotsReply = z.infer<typeof slotsReplySchema>

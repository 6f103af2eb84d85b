/**
 * What lanes and a control plane say about slots (rate.ts): `POST /v1/gateway-runtime/slots`. A cell carries the totals
 * that the lane knows, and what it wants more; the answer carries the ledger's totals.
 */
import { z } from 'zod'

const total = z.number().int().min(0)
/** A minute in steps of a second. */
const coolingSteps = 64
const cooling = z.array(z.tuple([z.number().int().min(0), total])).max(coolingSteps)

export const slotCellSchema = z.strictObject({
  account: z.string().max(120),
  granted: total,
  returned: total,
  want: total.describe('How many slots the waiting requests need more'),
  recalled_at: total.describe(
    'The last call for slots of this account that the lane has followed; 0 where there was none',
  ),
  cooling: cooling.nullable().describe('In how many milliseconds how many slots in use are cold; null where not told'),
  process: z.string().max(64).describe('Names the process of the lane: another one does not know when slots were used'),
})
export type SlotCell = z.infer<typeof slotCellSchema>

export const slotsRequestSchema = z.strictObject({
  lane: z.number().int(),
  stream_id: z.uuid(),
  cells: z.array(slotCellSchema).min(1).max(500),
})

export const slotsReplySchema = z.object({
  cells: z.array(
    z.object({
      account: z.string(),
      granted: total,
      returned: total,
      cooling: z
        .array(z.tuple([z.number().int().min(0), total]))
        .describe(
          'Where less was granted than wanted: in how many milliseconds how many slots more can be had, of all lanes',
        ),
    }),
  ),
})
export type SlotsReply = z.infer<typeof slotsReplySchema>

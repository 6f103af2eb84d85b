/** What a gateway tells the control plane of a server's offers: POST /v1/gateway-runtime/mcp-offers. */
import { z } from 'zod'
import { definitionLimitBytes, offerKinds } from './definition.ts'

export const reportLimit = 100
/** What a gateway puts into one report, unless one definition alone is longer. */
export const reportBytes = 512 * 1024

/**
 * What a server offers when it is first listed counts as there from the first, in pages and on several gateways; for this
 * long, names that were not seen before are approved where the server's record says `first_use`: as long as a server of a
 * thousand tools takes to be reported, once in vain, and no longer. What comes later is held for a person.
 */
export const firstUseMilliseconds = 10_000

export const offerReportSchema = z.strictObject({
  server_id: z.uuid(),
  kind: z.enum(offerKinds),
  definitions: z
    .array(z.string().max(definitionLimitBytes))
    .max(reportLimit)
    .describe('Canonical JSON, each; none where the server offers nothing of the kind'),
})
export type OfferReport = z.infer<typeof offerReportSchema>

export const offerReportReplySchema = z.object({ approved: z.number().int(), held: z.number().int() })

/** The report of a server's offers from a gateway to the control plane: POST /v1/gateway-runtime/mcp-offers. */
import { z } from 'zod'
import { definitionLimitBytes, offerKinds } from './definition.ts'

export const reportLimit = 100
/** The size limit of a report, unless a single definition is longer. */
export const reportBytes = 512 * 1024

/**
 * How long unseen names are approved on first use after a server was first listed, if its record says `first_use`. It
 * is enough for a server with a thousand tools to be reported, with one failed attempt. Later offers are held for a
 * person.
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

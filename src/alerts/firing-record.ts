/** What an alert has found, with its notices, as the API shows it. */
import { z } from 'zod'

const instant = z.iso.datetime()
export const firingSchema = z.object({
  id: z.uuid(),
  alert_id: z.uuid(),
  alert: z.string().nullable().describe('Its name; null where it was deleted and the event of that is not kept'),
  alert_deleted: z.boolean(),
  condition: z.string().nullable(),
  subject: z.string().describe('What it is about'),
  value: z.number().describe('When it fired, in the unit of the condition'),
  threshold: z.number(),
  severity: z.string(),
  about: z.string(),
  fired_at: instant,
  resolved_at: instant.nullable().describe('Null as long as it holds'),
  notices: z.array(
    z.object({
      id: z.uuid().describe('The idempotency key that the receiver got'),
      channel_id: z.uuid(),
      channel: z.string().nullable().describe('Its name, as for the alert'),
      channel_deleted: z.boolean(),
      kind: z.enum(['fired', 'resolved']),
      state: z.enum(['pending', 'sent', 'failed']),
      attempts: z.number().int(),
      error: z.string().nullable(),
      sent_at: instant.nullable(),
    }),
  ),
})
export type FiringRecord = z.infer<typeof firingSchema>

/** What `GET /v1/policies/activity` answers. */
import { z } from 'zod'

const count = z.number().int()

export const activityReply = z.object({
  since: z.iso.datetime(),
  until: z.iso.datetime().describe('Callers who see the same share one answer for 30 seconds at most'),
  examined: count.describe('How many requests were looked at, the newest first, at most 20 000'),
  complete: z.boolean().describe('False where there are older ones in the window that were not looked at'),
  exact_since: z.iso.datetime().describe('From when on every request was looked at; since where complete is true'),
  policies: z.array(
    z.object({
      policy_id: z.string(),
      asked: count.describe('How often it was for a request or an answer, and its condition held'),
      verdicts: z.record(z.string(), count),
      stopped: count.describe('How often it was enforced with block, deny, escalate or rate_limit'),
      mean_ms: z.number(),
      points: z
        .array(z.object({ found: count.describe('Verdicts other than allow'), stopped: count }))
        .describe('The window in 24 equal parts'),
    }),
  ),
})

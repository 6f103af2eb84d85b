/** Events as the API describes them: each type with what its `details` hold (`event-types.ts`). */
import { z } from 'zod'
import { attributionSchema, costAttributionSchema, eventSchema, verdicts } from './event.ts'
import { type EventType, eventGroups } from './event-types.ts'

const policyResult = z
  .looseObject({
    policy_id: z.string(),
    kind: z.string(),
    stage: z.enum(['pre_request', 'post_request', 'pre_response']),
    mode: z.enum(['enforce', 'monitor']).describe('monitor: recorded and not applied'),
    verdict: z.enum(verdicts),
    reason_code: z.string(),
    latency_ms: z.number(),
    targets: z.array(z.string()).describe('Where something was found and what kind of thing, never the thing itself'),
  })
  .meta({ id: 'PolicyResult' })

const shared = {
  event_attribution: attributionSchema.meta({ id: 'EventAttribution' }),
  event_cost_attribution: costAttributionSchema.meta({ id: 'EventCostAttribution' }).optional(),
}

/** An event as the API answers it, each type with its details. Built on demand, so that no start pays for it. */
export const describedEventSchema = z.lazy(() =>
  z.union(
    eventGroups.map(({ name, types, details }) =>
      eventSchema
        .extend({
          ...shared,
          event_type: z.enum<readonly EventType[]>(types),
          details: details({ policyResult }).optional(),
        })
        .meta({ id: name }),
    ),
  ),
)

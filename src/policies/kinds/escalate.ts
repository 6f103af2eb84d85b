/** Escalates every request that matches its condition to a person (escalations/README.md). */
import { z } from 'zod'
import { capturing, everyStage, policyKind } from './kind.ts'
import { reasonCode } from './reason-code.ts'

export const escalate = policyKind({
  kind: 'escalate',
  about: 'Queues whatever its condition matches for a person to decide',
  stages: everyStage,
  needsWhen: true,
  config: z.strictObject({ reason_code: reasonCode, ...capturing }),
  compile: ({ reason_code }) => {
    const decision = { verdict: 'escalate', reasonCode: reason_code, targets: [] } as const
    return { form: 'whole', consider: () => decision }
  },
})

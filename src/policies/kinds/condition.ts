/** A verdict for every request that matches its condition (`when`). */
import { z } from 'zod'
import { capturing, everyStage, policyKind } from './kind.ts'
import { callerMessage, reasonCode } from './reason-code.ts'

export const condition = policyKind({
  kind: 'condition',
  about: 'Gives a verdict to whatever its condition matches',
  stages: everyStage,
  needsWhen: true,
  config: z.strictObject({
    verdict: z.enum(['block', 'deny', 'escalate', 'rate_limit']),
    reason_code: reasonCode,
    message: callerMessage.optional().describe('What the caller is told'),
    retry_after_seconds: z.number().int().min(1).max(86_400).optional().describe('With the verdict rate_limit'),
    ...capturing,
  }),
  compile: ({ verdict, reason_code, message, retry_after_seconds: retryAfter }) => {
    const decision = {
      verdict,
      reasonCode: reason_code,
      targets: [],
      ...(message === undefined ? {} : { message }),
      ...(retryAfter === undefined ? {} : { retryAfter }),
    }
    return { form: 'whole', consider: () => decision }
  },
})

/** Scores texts from outside for attempts to take over the model, by named signals with weights. */
import { z } from 'zod'
import { injectionMatcher } from '../../inspection/detectors/injection/injection-matcher.ts'
import { policyKind, textAction } from './kind.ts'

/** `bun test/load/detection-rates.ts` measures its detection rates. */
export const defaultThreshold = 0.5

export const promptInjection = policyKind({
  kind: 'prompt-injection',
  about:
    'Scores texts that do not come from the application itself for attempts to take over the model, by named signals',
  stages: ['pre_request'],
  config: z.strictObject({
    threshold: z
      .number()
      .min(0.1)
      .max(1)
      .default(defaultThreshold)
      .describe('The score from which a text counts as an attempt; lower finds more and disturbs more'),
    action: textAction,
  }),
  compile: ({ threshold, action }) => ({
    form: 'text',
    matcher: injectionMatcher(threshold),
    action,
    reasonCode: 'policy.prompt_injection',
    restore: false,
    reads: ({ role }) => role !== 'system' && role !== 'developer' && role !== 'assistant',
  }),
})

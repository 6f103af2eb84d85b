/** Says nothing but that it was there: a result on the outcome's event for every request its targets and `when` match. */
import { z } from 'zod'
import { everyStage, policyKind } from './kind.ts'

export const audit = policyKind({
  kind: 'audit',
  about: 'Records a mark on the event of whatever its targets and `when` match; changes nothing',
  stages: everyStage,
  config: z.strictObject({
    reason_code: z
      .string()
      .regex(/^[a-z0-9_]+(\.[a-z0-9_]+)*$/, 'Write a dotted word in lower case: audit.finance')
      .max(100)
      .default('policy.audit')
      .describe('What the result on the event says'),
  }),
  compile: ({ reason_code: reasonCode }) => {
    const mark = { verdict: 'allow', reasonCode, targets: [] } as const
    return { form: 'whole', consider: () => mark }
  },
})

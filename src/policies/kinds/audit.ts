/** Only records that it applied: a result on the outcome's event for every request its targets and `when` match. */
import { z } from 'zod'
import { everyStage, policyKind } from './kind.ts'
import { reasonCode } from './reason-code.ts'

export const audit = policyKind({
  kind: 'audit',
  about: 'Records a mark on the event of whatever its targets and condition match; changes nothing',
  stages: everyStage,
  config: z.strictObject({ reason_code: reasonCode.default('policy.audit').describe('What the result says') }),
  compile: (config) => {
    const mark = { verdict: 'allow', reasonCode: config.reason_code, targets: [] } as const
    return { form: 'whole', mark, consider: () => mark }
  },
})

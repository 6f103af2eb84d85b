/** Finds credentials by their issuers' formats or by their names, private keys, and signed tokens. */
import { z } from 'zod'
import { secretDetector } from '../../inspection/detectors/secrets/secret-patterns.ts'
import { matcherOf } from '../../inspection/detectors/text-matcher.ts'
import { capturing, everyStage, policyKind, textAction } from './kind.ts'

export const secrets = policyKind({
  kind: 'secrets',
  about:
    "Finds credentials: issuers' keys and tokens, passwords in addresses, values named as keys, private keys, JWTs, this product's own",
  stages: everyStage,
  config: z.strictObject({
    action: textAction,
    ...capturing,
    restore: z.boolean().default(false).describe('Whether what was redacted in the request is put back in its answer'),
  }),
  compile: ({ action, restore }) => ({
    form: 'text',
    matcher: matcherOf(secretDetector()),
    action,
    reasonCode: 'policy.secrets',
    restore,
  }),
})

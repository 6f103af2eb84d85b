/**
 * Finds personal data by its form, its checksum and the words beside a phone number. Names and postal addresses have no
 * fixed form and are not found.
 */
import { z } from 'zod'
import { personalDataDetector, personalDataTypes } from '../../inspection/detectors/personal-data/personal-data.ts'
import { matcherOf } from '../../inspection/detectors/text-matcher.ts'
import { capturing, everyStage, policyKind, textAction } from './kind.ts'

export const pii = policyKind({
  kind: 'pii',
  about: 'Finds personal data by its form: addresses, phone, card, account and social security numbers, dates of birth',
  stages: everyStage,
  config: z.strictObject({
    types: z
      .array(z.enum(personalDataTypes))
      .min(1)
      .default(['email', 'phone', 'card', 'iban', 'ssn', 'ip'])
      .describe('What is looked for; `date_of_birth` takes every full date from 1900 on'),
    action: textAction,
    ...capturing,
    restore: z.boolean().default(false).describe('Whether what was redacted in the request is put back in its answer'),
  }),
  compile: ({ types, action, restore }) => ({
    form: 'text',
    matcher: matcherOf(personalDataDetector(types)),
    action,
    reasonCode: 'policy.pii',
    restore,
  }),
})

/** Replaces literal texts in answers, streams included. */
import { z } from 'zod'
import { outputStages, policyKind } from './kind.ts'
import { literalMatcher } from './literal-matcher.ts'

export const responseRewrite = policyKind({
  kind: 'response-rewrite',
  about: 'Replaces texts in answers by others, letter for letter',
  stages: outputStages,
  config: z.strictObject({
    replacements: z
      .array(z.strictObject({ find: z.string().min(1).max(512), replace: z.string().max(2000) }))
      .min(1)
      .max(1000)
      .refine((list) => new Set(list.map(({ find }) => find)).size === list.length, 'Each text once'),
  }),
  compile: ({ replacements }) => {
    const texts = new Map(replacements.map(({ find, replace }) => [find, replace]))
    return {
      form: 'text',
      matcher: literalMatcher([...texts.keys()]),
      action: 'rewrite',
      replacement: (found) => texts.get(found) ?? found,
      reasonCode: 'policy.response_rewrite',
      restore: false,
    }
  },
})

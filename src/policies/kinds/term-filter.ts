/** Finds the terms of a list, in any case, width and composition, and with invisible characters inside. */
import { z } from 'zod'
import { termDetector } from '../../inspection/detectors/terms/term-detector.ts'
import { matcherOf } from '../../inspection/detectors/text-matcher.ts'
import { capturing, everyStage, policyKind, textAction } from './kind.ts'

export const termFilter = policyKind({
  kind: 'term-filter',
  about: 'Finds the terms of a list in every text, whatever their case, width, disguise or invisible characters inside',
  stages: everyStage,
  config: z.strictObject({
    terms: z
      .array(z.string().min(1).max(512))
      .min(1)
      .max(100_000)
      .describe('The terms; compared by compatibility form and without regard to invisible characters'),
    action: textAction,
    ...capturing,
    case_sensitive: z.boolean().default(false).describe('Whether upper and lower case differ'),
    word_boundaries: z.boolean().default(false).describe('Whether only whole words count'),
    homoglyphs: z
      .boolean()
      .default(false)
      .describe('Whether letters that look alike (Cyrillic, Greek, accented) are the same'),
    restore: z.boolean().default(false).describe('Whether what was redacted in the request is put back in its answer'),
  }),
  compile: (config) => ({
    form: 'text',
    matcher: matcherOf(
      termDetector(config.terms, 'TERM', {
        caseSensitive: config.case_sensitive,
        homoglyphs: config.homoglyphs,
        wordBoundaries: config.word_boundaries,
      }),
    ),
    action: config.action,
    reasonCode: 'policy.term_filter',
    restore: config.restore,
  }),
})

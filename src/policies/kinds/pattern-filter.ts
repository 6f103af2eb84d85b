/** Finds matches of regular expressions, in time linear in the text; in streams each match has a bounded length. */
import { z } from 'zod'
import { matcherOf } from '../../inspection/detectors/text-matcher.ts'
import { patternDetector } from '../../inspection/regex/pattern-detector.ts'
import { capturing, everyStage, policyKind, textAction } from './kind.ts'

const pattern = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z][A-Za-z0-9_ -]{0,39}$/, 'Begin with a letter; letters, digits, space, _ and - follow')
    .describe('What it finds: the placeholder `[NAME]` takes its place, and events name it'),
  pattern: z
    .string()
    .min(1)
    .max(2000)
    .describe(
      'A regular expression without back references; look-around of one character. For streams at most 512 long',
    ),
})

export const patternFilter = policyKind({
  kind: 'pattern-filter',
  about: 'Finds what regular expressions describe, in linear time; a match in a stream has at most 512 characters',
  stages: everyStage,
  config: z.strictObject({
    patterns: z.array(pattern).min(1).max(200),
    action: textAction,
    ...capturing,
    case_insensitive: z.boolean().default(false).describe('Whether upper and lower case are the same'),
    restore: z.boolean().default(false).describe('Whether what was redacted in the request is put back in its answer'),
  }),
  compile: (config, { stages }) => ({
    form: 'text',
    matcher: matcherOf(
      patternDetector(
        config.patterns.map(({ name, pattern: source }, index) => ({
          label: name.toUpperCase().replaceAll(/[ -]/g, '_'),
          pattern: source,
          entry: `patterns[${index}]`,
          caseInsensitive: config.case_insensitive,
        })),
        {
          streaming: stages.some((stage) => stage !== 'pre_request'),
          paramOf: (index) => `config.patterns.${index}.pattern`,
        },
      ),
    ),
    action: config.action,
    reasonCode: 'policy.pattern_filter',
    restore: config.restore,
  }),
})

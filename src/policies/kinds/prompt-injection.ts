/** Scores texts from outside for attempts to take over the model, by named signals with weights. */
import { z } from 'zod'
import { injectionMatcher } from '../../inspection/detectors/injection/injection-matcher.ts'
import { families } from '../../languages/families.ts'
import { membersWhere } from '../../languages/member-table.ts'
import { capturing, everyStage, policyKind, type TextPolicy, textAction } from './kind.ts'

/** `bun test/load/costs/detection-rates.ts` measures its detection rates. */
export const defaultThreshold = 0.5

const origins = ['user', 'tool', 'other', 'assistant', 'system', 'developer', 'tool_definition'] as const
type Origin = (typeof origins)[number]

/** Members with definitions of tools, formats and the like, in any language. */
const definitions: ReadonlySet<string> = new Set(
  Object.values(families).flatMap(({ members }) => membersWhere(members, ({ text }) => text === 'description')),
)

const originOfRole: Readonly<Record<string, Origin>> = {
  ...{ user: 'user', tool: 'tool', function: 'tool', assistant: 'assistant', developer: 'developer' },
}

/** Who wrote a text. */
function originOf({ kind, role, place }: Parameters<NonNullable<TextPolicy['reads']>>[0]): Origin {
  if (role === 'system') return definitions.has(place) ? 'tool_definition' : 'system'
  return originOfRole[role ?? ''] ?? (kind === 'tool_result' ? 'tool' : 'other')
}

export const promptInjection = policyKind({
  kind: 'prompt-injection',
  about:
    'Scores texts that do not come from the application itself for attempts to take over the model, by named signals',
  stages: everyStage,
  config: z.strictObject({
    threshold: z
      .number()
      .min(0.1)
      .max(1)
      .default(defaultThreshold)
      .describe('The score from which a text counts as an attempt; lower finds more and disturbs more'),
    origins: z
      .array(z.enum(origins))
      .min(1)
      .default(['user', 'tool', 'other'])
      .describe('Whose texts are scored; `tool` is the results of tools, `other` is members without a known role'),
    action: textAction,
    ...capturing,
  }),
  compile({ threshold, origins: chosen, action }) {
    const scored: ReadonlySet<Origin> = new Set(chosen)
    return {
      form: 'text',
      matcher: injectionMatcher(threshold),
      action,
      reasonCode: 'policy.prompt_injection',
      restore: false,
      reads: (text) => scored.has(originOf(text)),
    }
  },
})

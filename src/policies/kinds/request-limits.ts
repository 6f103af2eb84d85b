/** Limits the size of a request and of the answer it asks for, apart from its cost. */
import { z } from 'zod'
import { isFamily, membersWith } from '../../languages/families.ts'
import { capturing, type Decision, policyKind, type Subject } from './kind.ts'

const most = z.number().int().min(0).max(1_000_000_000).optional()

export const requestLimits = policyKind({
  kind: 'request-limits',
  about: 'Bounds the size of requests and what they may ask for',
  stages: ['pre_request'],
  config: z
    .strictObject({
      max_input_characters: most.describe('Of all texts together'),
      max_input_tokens: most.describe('Estimated from the text'),
      max_output_tokens: most.describe(
        'A request that asks for more, or names no limit above 0 where its family has one',
      ),
      max_choices: most.describe('n'),
      max_messages: most.describe('Texts of the conversation'),
      max_tools: most.describe('Tools that are offered'),
      allow_streams: z.boolean().optional(),
      action: z.enum(['deny', 'block', 'escalate']).default('deny'),
      ...capturing,
    })
    .refine(
      ({ action: _, capture_escalated: __, ...limits }) => Object.keys(limits).length > 0,
      'Give at least one limit',
    ),
  compile: ({ action, allow_streams, capture_escalated: _, ...limits }) => {
    type Name = keyof typeof limits
    const bounds = Object.entries(limits).filter((entry): entry is [Name, number] => entry[1] !== undefined)
    return {
      form: 'whole',
      consider(subject): Decision | null {
        const over: string[] = []
        for (const [name, bound] of bounds) if (sizes[name](subject) > bound) over.push(name)
        if (allow_streams === false && subject.facts.stream) over.push('allow_streams')
        if (over.length === 0) return null
        const message = `A policy limits this request: ${over.join(', ')}`
        return { verdict: action, reasonCode: 'policy.request_limit', message, targets: over }
      },
    }
  },
})

const sizes = {
  max_input_characters: ({ texts }: Subject) => texts.reduce((sum, { text }) => sum + text.length, 0),
  max_input_tokens: ({ facts }: Subject) => facts.inputEstimate,
  max_output_tokens: ({ facts, context }: Subject) =>
    facts.outputLimit ?? (mayLimitOutput(context.request.family) ? Number.POSITIVE_INFINITY : 0),
  max_choices: ({ facts }: Subject) => facts.choices,
  max_messages: ({ texts }: Subject) => texts.length,
  max_tools: ({ context }: Subject) => context.request.tools.length,
}

const mayLimitOutput = (family: string): boolean => isFamily(family) && membersWith(family, 'output limit').length > 0

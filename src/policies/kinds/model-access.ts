/**
 * The models and providers that may be used, by exact name or `*` glob; a denial wins, and covers every name of a
 * model. The policy also covers fallbacks.
 */
import { z } from 'zod'
import { someGlobMatches } from '../../tokens/governed-token.ts'
import type { ModelView } from '../conditions/context.ts'
import { type Decision, policyKind } from './kind.ts'

const globs = z.array(z.string().min(1).max(200)).min(1).max(1000)

const noAliases: readonly string[] = []

function isAllowed(
  name: string,
  aliases: readonly string[],
  allowed: readonly string[] | undefined,
  denied: readonly string[] | undefined,
): boolean {
  if (allowed !== undefined && !someGlobMatches(allowed, name)) return false
  if (denied === undefined) return true
  if (someGlobMatches(denied, name)) return false
  for (const alias of aliases) if (someGlobMatches(denied, alias)) return false
  return true
}

export const modelAccess = policyKind({
  kind: 'model-access',
  about: 'Says which models and providers may be used',
  stages: ['pre_request'],
  config: z
    .strictObject({
      allow_models: globs.optional().describe('Only these; exact ids or * globs'),
      deny_models: globs.optional().describe('None of these'),
      allow_providers: globs.optional().describe('Only providers of these names'),
      deny_providers: globs.optional().describe('None of these'),
    })
    .refine((config) => Object.values(config).some((list) => list !== undefined), 'Give at least one list'),
  compile: ({ allow_models, deny_models, allow_providers, deny_providers }) => {
    const wrongOf = ({ id, aliases, provider }: ModelView): string | null => {
      // A request for a conversation goes to no model.
      if (id !== '' && !isAllowed(id, aliases, allow_models, deny_models)) return 'model'
      return isAllowed(provider, noAliases, allow_providers, deny_providers) ? null : 'provider'
    }
    return {
      form: 'whole',
      allowsModel: (model) => wrongOf(model) === null,
      consider({ context: { model } }): Decision | null {
        const wrong = wrongOf(model)
        if (wrong === null) return null
        const message = `A policy does not allow this ${wrong}`
        return { verdict: 'deny', reasonCode: `policy.${wrong}_not_allowed`, message, targets: [wrong] }
      },
    }
  },
})

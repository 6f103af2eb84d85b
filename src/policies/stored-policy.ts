/** A policy as the state database holds it: all that gateways need, and nothing that is only for people. */
import { z } from 'zod'
import { refersTo } from '../api/resource.ts'
import { familyNames, type PolicyStage, policyStages } from '../languages/families.ts'

export const policyModes = ['enforce', 'monitor'] as const
export const brokenChoices = ['deny', 'allow'] as const

/** The subjects of a policy; an absent list does not restrict them. */
export interface PolicyTargets {
  teams?: readonly string[] | undefined
  gateways?: readonly string[] | undefined
  tokens?: readonly string[] | undefined
  /** Exact ids or `*` globs. */
  models?: readonly string[] | undefined
  families?: readonly string[] | undefined
}

export interface StoredPolicy {
  id: string
  kind: string
  stages: readonly PolicyStage[]
  /** As it was given; its kind's schema reads it. */
  config: unknown
  when: string | null
  targets: PolicyTargets
  /** Its place in the chain: the lowest first. */
  position: number
  mode: (typeof policyModes)[number]
  whenBroken: (typeof brokenChoices)[number]
  enabled: boolean
  version: number
}

export const targetsSchema = z.strictObject({
  teams: z.array(z.uuid()).max(1000).optional().describe("A token's team, or its owner's").meta(refersTo('/v1/teams')),
  gateways: z.array(z.uuid()).max(1000).optional().meta(refersTo('/v1/gateways')),
  tokens: z
    .array(z.uuid())
    .max(1000)
    .optional()
    .describe('These and what was cloned or rotated from them; empty: only tokens that name the policy')
    .meta(refersTo('/v1/tokens')),
  models: z.array(z.string().min(1).max(200)).min(1).max(1000).optional().describe('Exact ids or * globs'),
  families: z.array(z.enum(familyNames)).min(1).optional(),
})

const json = <Schema extends z.ZodType>(schema: Schema) =>
  z
    .string()
    .transform((text): unknown => JSON.parse(text))
    .pipe(schema)

const rowSchema = z.object({
  id: z.string(),
  kind: z.string(),
  stages: json(z.array(z.enum(policyStages))),
  config: json(z.unknown()),
  condition: z.string().nullable(),
  targets: json(targetsSchema),
  position: z.number(),
  mode: z.enum(policyModes),
  when_broken: z.enum(brokenChoices),
  enabled: z.number(),
  version: z.number(),
})

export const policyColumns = Object.keys(rowSchema.shape)

/** Opens a row of `policyColumns`. Throws if it does not have the form that this version knows. */
export function openPolicy(row: unknown): StoredPolicy {
  const { condition, when_broken, enabled, ...read } = rowSchema.parse(row)
  return { ...read, when: condition, whenBroken: when_broken, enabled: enabled === 1 }
}

/**
 * The body that creates or changes a policy over the API. The config is one schema for each kind, so that the
 * description shows every kind's own and an error names the field in it (`config.terms.0`). Compiling comes last: it
 * finds errors that a schema cannot express, such as a pattern without a bound.
 */

import { z } from 'zod'
import { Failure } from '../failure.ts'
import { nameText } from '../identity/free-text.ts'
import { policyStages } from '../languages/families.ts'
import { compileWhen, maxWhenLength, readsResponse } from './conditions/condition.ts'
import { policyKinds } from './kinds/index.ts'
import { checkedConfig, type PolicyKind, type TextPolicy } from './kinds/kind.ts'
import { brokenChoices, type PolicyTargets, policyModes, type StoredPolicy, targetsSchema } from './stored-policy.ts'

const shape = {
  name: nameText(200).describe('What people call it; each name once'),
  stages: z
    .array(z.enum(policyStages))
    .min(1)
    .describe('Where it looks: the request, the answer as it came, as it goes'),
  when: z
    .string()
    .min(1)
    .max(maxWhenLength)
    .nullable()
    .describe('A condition in CEL over request, response, token, model and now; null: always'),
  targets: targetsSchema.describe('Whom and what it is for; without any list, all'),
  order: z.number().int().min(1).max(1_000_000).describe('Its place in the chain; what stands there moves on'),
  mode: z.enum(policyModes).describe('monitor: what it says is recorded and not applied'),
  when_broken: z.enum(brokenChoices).describe('What becomes of a request that it fails to decide about'),
  enabled: z.boolean(),
}

const createShape = {
  ...shape,
  when: shape.when.default(null),
  targets: shape.targets.prefault({}),
  order: shape.order.optional().describe('Its place in the chain; default: the last'),
  mode: shape.mode.default('enforce'),
  when_broken: shape.when_broken.default('deny'),
  enabled: shape.enabled.default(true),
}

const bodyOfKind = ({ kind, about, stages, config }: PolicyKind) =>
  z
    .strictObject({
      ...createShape,
      kind: z.literal(kind),
      stages: z
        .array(z.enum(stages))
        .min(1)
        .describe(createShape.stages.description ?? ''),
      config,
    })
    .describe(about)

/** Created on first use: a start does not need it. */
export const createPolicyBody = z.lazy(() => {
  const [firstKind, ...otherKinds] = [...policyKinds.values()].map(bodyOfKind)
  if (firstKind === undefined) throw new Error('There is no policy kind')
  return z.discriminatedUnion('kind', [firstKind, ...otherKinds])
})
export type CreatePolicyBody = z.infer<typeof createPolicyBody>

export const updatePolicyBody = z.strictObject({
  name: shape.name.optional(),
  stages: shape.stages.optional(),
  config: z
    .record(z.string(), z.unknown())
    .optional()
    .describe("The whole config anew, of the policy's own kind (see POST /v1/policies)"),
  when: shape.when.optional(),
  targets: shape.targets.optional(),
  order: shape.order.optional(),
  mode: shape.mode.optional(),
  when_broken: shape.when_broken.optional(),
  enabled: shape.enabled.optional(),
})
export type UpdatePolicyBody = z.infer<typeof updatePolicyBody>

/** A policy apart from its name, place and version. */
export type PolicyContent = Omit<StoredPolicy, 'id' | 'position' | 'version'>

export const contentOf = (body: CreatePolicyBody): PolicyContent => ({
  kind: body.kind,
  stages: [...new Set(body.stages)],
  config: body.config,
  when: body.when,
  targets: withoutAbsent(body.targets),
  mode: body.mode,
  whenBroken: body.when_broken,
  enabled: body.enabled,
})

export const changedContent = (before: PolicyContent, body: UpdatePolicyBody): PolicyContent => ({
  kind: before.kind,
  stages: body.stages === undefined ? before.stages : [...new Set(body.stages)],
  config: body.config === undefined ? before.config : withDefaults(before.kind, body.config),
  when: body.when === undefined ? before.when : body.when,
  targets: body.targets === undefined ? before.targets : withoutAbsent(body.targets),
  mode: body.mode ?? before.mode,
  whenBroken: body.when_broken ?? before.whenBroken,
  enabled: body.enabled ?? before.enabled,
})

/** With what the kind takes for members that are left out, as when a policy is created: so versions can be compared. */
function withDefaults(kind: string, config: PolicyContent['config']): PolicyContent['config'] {
  const known = policyKinds.get(kind)
  return known === undefined ? config : checkedConfig(known.config, config)
}

const withoutAbsent = (targets: PolicyTargets): PolicyTargets => JSON.parse(JSON.stringify(targets))

/** Throws 422 naming the invalid field. */
export function checkContent(content: PolicyContent): void {
  const kind = policyKinds.get(content.kind)
  if (kind === undefined) {
    throw new Failure('invalid_parameter', { param: 'kind', message: 'This version does not have this policy kind' })
  }
  const foreign = content.stages.findIndex((stage) => !kind.stages.includes(stage))
  if (foreign >= 0) {
    const message = `A policy of kind ${kind.kind} can have the stages ${kind.stages.join(', ')}`
    throw new Failure('invalid_parameter', { param: `stages.${foreign}`, message })
  }
  if (kind.needsWhen && content.when === null) {
    throw new Failure('invalid_parameter', {
      param: 'when',
      message: `A policy of kind ${kind.kind} needs a condition`,
    })
  }
  if (content.when !== null) compileWhen(content.when, content.stages)
  const compiled = kind.compile(content.config, { stages: content.stages })
  if (compiled.form === 'text') checkChanging(content, compiled)
}

/**
 * A condition on the answer is known when the answer is complete, and a complete stream can be stopped but no longer
 * changed: such a policy would let through the text it should remove, or deny every stream.
 */
function checkChanging({ when, mode }: PolicyContent, { action }: TextPolicy): void {
  if (when === null || mode !== 'enforce' || !readsResponse(when)) return
  if (action !== 'redact' && action !== 'rewrite') return
  const message = `A policy that is to ${action} a stream cannot wait for the response: leave response out, or block`
  throw new Failure('invalid_parameter', { param: 'when', message })
}

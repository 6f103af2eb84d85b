import { z } from 'zod'
import { Failure } from '../../../../src/failure.ts'
import { modelResource } from '../../../../src/providers/catalog/model-resource.ts'
import { kindOf } from '../kind.ts'
import type { Entry } from '../places.ts'

const targetsSchema = z.array(z.looseObject({ upstream_model: z.string().optional() }))

/** The model of a target is this one where the target does not say it. */
function withModels(given: unknown, name: unknown) {
  const targets = targetsSchema.parse(given ?? [])
  // Of one target alone, weight and tier say nothing, and the control plane does not keep them.
  const rest = targets.length === 1 ? { weight: 1, tier: 1 } : {}
  return targets.map((target) => ({ upstream_model: name, ...target, ...rest }))
}

/** By the name that callers ask for. Who answers stands in `targets`. */
export const models = kindOf(modelResource, {
  names: { id: 'name' },
  omit: ['provider_id', 'upstream_model'],
  absent: { strategy: 'priority', translation: 'lenient', fallbacks: [] },
  shown: ({ id, targets }) => ({ targets: withModels(targets, id) }),
  normalised: (entry: Entry) =>
    entry.targets === undefined ? entry : { ...entry, targets: withModels(entry.targets, entry.name) },
  check(body) {
    const { targets } = modelResource.create.parse(body)
    if (targets === undefined) throw new Failure('usage', { message: 'is missing', param: 'targets' })
  },
})

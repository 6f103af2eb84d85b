/**
 * Models as a file says them, by the name that callers ask for. A target names its provider by name. What the file
 * leaves out becomes what a new record has.
 */
import { z } from 'zod'
import { Failure } from '../../../src/failure.ts'
import { createModelBody } from '../../../src/providers/catalog/model-resource.ts'
import type { ApplyKind, Changes, Present } from './apply-kind.ts'

const { id, targets, strategy, families, price, max_output_tokens, fallbacks, translation } = createModelBody.shape

const entry = z.strictObject({
  name: id,
  targets: targets.unwrap(),
  ...{ strategy, families, price, max_output_tokens, fallbacks, translation },
})
type Wanted = z.infer<typeof entry>

/** What a record has of what its file leaves out. */
const newRecord = {
  strategy: 'priority',
  families: null,
  price: null,
  max_output_tokens: null,
  fallbacks: [],
  translation: 'lenient',
} as const

export const models: ApplyKind<Wanted> = {
  member: 'models',
  one: 'model',
  path: '/v1/catalog/models',
  entry,
  check({ name, targets: named }) {
    if (named.length === 0) throw new Failure('usage', { message: `${name} has no target`, param: 'targets' })
  },
  changesOf(wanted, present) {
    const changes: Changes = {}
    const { name, targets: named, ...rest } = wanted
    const shown = { ...newRecord, ...rest, targets: named.map((target) => ({ upstream_model: name, ...target })) }
    const there = { ...present, targets: targetsOf(present) }
    for (const [field, to] of Object.entries(shown)) {
      const from = Object.entries(there).find(([member]) => member === field)?.[1]
      if (to !== undefined && !Bun.deepEquals(to, from)) changes[field] = { from, to }
    }
    return changes
  },
  bodyOf({ name, ...wanted }, changes) {
    if (changes === null) return { id: name, ...wanted }
    const changed = Object.entries(changes).map(([field, { to }]) => [field, to])
    return Object.fromEntries(changed)
  },
}

const shownTargets = z.array(z.looseObject({ upstream_model: z.string().optional() }))

const targetsOf = ({ id: name, targets: shown }: Present) =>
  shownTargets.parse(shown).map((target) => ({ upstream_model: name, ...target }))

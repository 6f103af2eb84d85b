import { z } from 'zod'
import { Failure } from '../src/failure.ts'
import { type ApplyKind, type Changes, isWithin, type Present } from './apply-kind.ts'

const entry = z.looseObject({ name: z.string().min(1), kind: z.string().min(1) })
type Wanted = z.infer<typeof entry>

export const policies: ApplyKind<Wanted> = {
  member: 'policies',
  one: 'policy',
  path: '/v1/policies',
  entry,
  changesOf(wanted, present) {
    if (present.kind !== wanted.kind) {
      throw new Failure('usage', {
        message: `The policy "${wanted.name}" is of kind ${present.kind}: delete it first`,
      })
    }
    return differencesOf(wanted, present)
  },
  bodyOf: (wanted, changes) => (changes === null ? wanted : changed(changes)),
}

function differencesOf(wanted: Wanted, present: Present): Changes {
  const changes: Changes = {}
  for (const [field, to] of Object.entries(wanted)) {
    const from = present[field]
    if (!(field === 'config' ? isWithin(to, from) : Bun.deepEquals(to, from))) changes[field] = { from, to }
  }
  return changes
}

const changed = (changes: Changes) => Object.fromEntries(Object.entries(changes).map(([field, { to }]) => [field, to]))

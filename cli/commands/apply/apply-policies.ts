import type { z } from 'zod'
import { Failure } from '../../../src/failure.ts'
import { checkContent, contentOf, createPolicyBody } from '../../../src/policies/policy-body.ts'
import type { ApplyKind, Changes, Present } from './apply-kind.ts'

const entry = createPolicyBody
type Wanted = z.infer<typeof entry>

/** A policy keeps its place in the chain if the file does not give one. */
export const policies: ApplyKind<Wanted> = {
  member: 'policies',
  one: 'policy',
  path: '/v1/policies',
  entry,
  check: (wanted) => checkContent(contentOf(wanted)),
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
    if (to !== undefined && !Bun.deepEquals(to, from)) changes[field] = { from, to }
  }
  return changes
}

const changed = (changes: Changes) => Object.fromEntries(Object.entries(changes).map(([field, { to }]) => [field, to]))

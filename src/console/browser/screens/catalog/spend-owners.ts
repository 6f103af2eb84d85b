/** Whose the spend of a gateway's requests can be, as `team:<id>` and `user:<id>`; found by their names. */
import type { Finder } from '../../parts/forms/choice.tsx'
import { finderOf } from './record-options.ts'

const organization = ['organization', 'The organization'] as const
const owners = [
  { kind: 'team', called: 'Team ', records: finderOf('/v1/teams', 'id') },
  { kind: 'user', called: '', records: finderOf('/v1/users', 'id') },
]

export const spendOwners: Finder = {
  async search(text, signal) {
    const found = owners.map(async ({ kind, called, records }) =>
      (await records.search(text, signal)).map(([id, name]) => [`${kind}:${id}`, `${called}${name}`] as const),
    )
    return [organization, ...(await Promise.all(found)).flat()]
  },
  async named(values, signal) {
    const found = owners.map(async ({ kind, called, records }) => {
      const ids = values.filter((value) => value.startsWith(`${kind}:`)).map((value) => value.slice(kind.length + 1))
      return (await records.named(ids, signal)).map(([id, name]) => [`${kind}:${id}`, `${called}${name}`] as const)
    })
    return [organization, ...(await Promise.all(found)).flat()]
  },
}

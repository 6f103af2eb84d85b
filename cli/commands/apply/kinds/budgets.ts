import { budgetResource } from '../../../../src/usage/api/budget-resource.ts'
import { kindOf } from '../kind.ts'
import { type Entry, entryMember } from '../places.ts'

/** The scope's kind says whether it names a team or a person. */
const scopeOf = (entry: Entry) => {
  const kind = entryMember(entry.scope, 'kind')
  return kind === 'team' ? { path: '/v1/teams' } : kind === 'user' ? { path: '/v1/users' } : null
}

export const budgets = kindOf(budgetResource, {
  references: { 'scope.id': scopeOf },
  names: { 'scope.id': 'name' },
})

import { budgetResource, scopeLists } from '../../../../src/usage/api/budget-resource.ts'
import { kindOf } from '../kind.ts'
import { type Entry, entryMember } from '../places.ts'

const paths: Readonly<Record<string, string>> = scopeLists

/** The scope's kind says whether it names a team, a person or an MCP server. */
const scopeOf = (entry: Entry) => {
  const path = paths[String(entryMember(entry.scope, 'kind'))]
  return path === undefined ? null : { path }
}

export const budgets = kindOf(budgetResource, {
  references: { 'scope.id': scopeOf },
  referredPaths: Object.values(paths),
  names: { 'scope.id': 'name' },
})

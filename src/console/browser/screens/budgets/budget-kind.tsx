/** Budgets as records: their list, and the form that makes or changes one. */
import { href } from '../../address.ts'
import { humanize } from '../../formats.ts'
import { isObject } from '../../json-object.ts'
import { type ListedRecord, type RecordKind, text } from '../catalog/records.tsx'
import { BudgetScope } from './budget-scope.tsx'
import { BudgetUse } from './budget-use.tsx'

export const budgetKind: RecordKind = {
  name: 'budgets',
  title: 'Budgets',
  one: 'budget',
  path: '/v1/budgets',
  write: 'catalog:write',
  nameOf: (record) => text(record, 'name'),
  deleting: 'Spending is no longer limited by it.',
  about: 'The most that the organization, a team, a person, or the tokens that name it may spend in a window.',
  command: "gatehouse budget create --name 'the company' --max-budget 500 --window month",
  choices: { kind: budgetScopes },
  columns: [
    { title: 'Name', cell: (record) => text(record, 'name') },
    { title: 'Of', cell: ({ scope }) => <BudgetScope scope={scopeOf(scope)} />, from: 'wide' },
    { title: 'For each', cell: ({ per }) => (typeof per === 'string' ? per : '–'), from: 'wider' },
    { title: 'Window', cell: (record) => humanize(text(record, 'window')), from: 'wide' },
    { title: 'Used', cell: budgetUse },
    { title: 'Usage', nowrap: true, cell: ({ id }) => <a href={href(`/budgets/${id}`)}>Who used it</a> },
  ],
}

/** Whose spend a budget bounds, as a person chooses it. */
async function budgetScopes(): Promise<(readonly [string, string])[]> {
  return [
    ['organization', 'The organization'],
    ['team', 'A team'],
    ['user', 'A person'],
    ['token', 'Tokens that share it: each names it when it is made'],
    ['mcp_server', 'An MCP server, or one of its tools'],
  ]
}

const scopeOf = (scope: unknown) => {
  const { kind, id, tool } = isObject(scope) ? scope : {}
  return {
    kind: String(kind),
    id: typeof id === 'string' ? id : null,
    tool: typeof tool === 'string' ? tool : null,
  }
}

const numberOf = (value: unknown): number | null => (typeof value === 'number' ? value : null)

function budgetUse({ current_spend, max_budget, per, values }: ListedRecord) {
  const count = (name: string) => (isObject(values) ? (numberOf(values[name]) ?? 0) : 0)
  const ofValues = {
    ...{ count: count('count'), exhausted: count('exhausted'), nearly_exhausted: count('nearly_exhausted') },
    most_spent: count('most_spent'),
  }
  const budget = {
    ...{ current_spend: numberOf(current_spend) ?? 0, max_budget: numberOf(max_budget) ?? 0 },
    ...(typeof per === 'string' ? { per, values: ofValues } : { per: null, values: null }),
  }
  return <BudgetUse budget={budget} />
}

/** How much of a budget is used: of one amount, or of the value that used most where each value has the amount. */
import type { Budget } from '../../api/routes.ts'
import { countNoun, money, number } from '../../formats.ts'
import { UsedBar } from '../../parts/small.tsx'

type Used = Pick<Budget, 'current_spend' | 'max_budget' | 'per' | 'values'>

/** What is held against `max_budget`, in US dollars. */
export const spentOf = ({ current_spend, values }: Used): number => values?.most_spent ?? current_spend

/** `3 of 120 customer values used up`; null for a budget of one amount. */
export function exhaustedWords({ per, values }: Pick<Used, 'per' | 'values'>): string | null {
  if (per === null || values === null) return null
  const { count, exhausted, nearly_exhausted: nearly } = values
  if (count === 0) return `no ${per} has spent anything`
  if (exhausted > 0) return `${number(exhausted)} of ${countNoun(count, `${per} value`)} used up`
  return nearly > 0
    ? `${number(nearly)} of ${countNoun(count, `${per} value`)} nearly used up`
    : `${countNoun(count, `${per} value`)}, none used up`
}

export function BudgetUse({ budget }: { budget: Used }) {
  const spent = spentOf(budget)
  const words = exhaustedWords(budget)
  const used = `${money(spent)} of ${money(budget.max_budget)}`
  return <UsedBar used={spent} limit={budget.max_budget} text={words === null ? used : `Highest: ${used}; ${words}`} />
}

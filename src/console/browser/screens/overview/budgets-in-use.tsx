/** Spend against budgets, with what each will have used at the end of its window. */
import { href } from '../../address.ts'
import type { Budget } from '../../api/routes.ts'
import { ago, money } from '../../formats.ts'
import { type Loaded, Show } from '../../parts/loaded.tsx'
import { Table } from '../../parts/table.tsx'
import { BudgetUse } from '../budgets/budget-use.tsx'

const shownAtMost = 6

export function BudgetsInUse({ of: budgets }: { of: Loaded<readonly Budget[]> }) {
  return (
    <section class="card stack">
      <h2>Budgets</h2>
      <Show of={budgets} rows={4}>
        {(found) => (
          <>
            <Table
              label="Budgets"
              rows={found.slice(0, shownAtMost)}
              keyOf={({ id }) => id}
              linkOf={({ id }) => href(`/budgets/${id}`)}
              columns={[
                { title: 'Budget', cell: ({ name }) => name },
                { title: 'Used', cell: (budget) => <BudgetUse budget={budget} /> },
                { title: 'Forecast', right: true, from: 'wide', cell: ({ forecast }) => money(forecast) },
                {
                  title: 'Resets',
                  from: 'wide',
                  cell: ({ resets_at }) => (resets_at === null ? 'Never' : ago(resets_at)),
                },
              ]}
              empty={<p class="quiet">No budget limits the spend. Add one in the catalog.</p>}
            />
            {found.length > shownAtMost && <a href={href('/catalog', { kind: 'budgets' })}>All budgets</a>}
          </>
        )}
      </Show>
    </section>
  )
}

import { ManyOf, OneOf } from '../../parts/forms/choice.tsx'
import { ErrorNote, useLoaded } from '../../parts/loaded.tsx'
import { recordChoices, recordOptions } from '../catalog/record-options.ts'

export interface Lists {
  policy_ids: readonly string[]
  access_policy_ids: readonly string[]
}

interface Chosen {
  /** A provider's name; empty for any. */
  provider: string
  budgetId: string
}

interface RestrictionProps {
  fields: Chosen
  set(changes: Partial<Chosen>): void
  lists: Lists
  setLists(lists: Lists): void
}

/** What else may narrow it: records of the catalog and policies that are made for tokens which name them. */
export function Restrictions({ fields, set, lists, setLists }: RestrictionProps) {
  const found = useLoaded('restrictions', () =>
    Promise.all([
      recordOptions('/v1/catalog/providers', 'name'),
      recordChoices('/v1/budgets', 'id'),
      recordChoices('/v1/access-policies', 'id'),
      recordOptions('/v1/policies', 'id'),
    ]),
  )
  const none = found.refusal === null ? null : []
  const [providers, budgets, accessPolicies, policies] = found.value ?? [none, none, none, none]
  return (
    <details>
      <summary>More restrictions</summary>
      <div class="stack">
        {found.refusal !== null && <ErrorNote refusal={found.refusal} retry={found.retry} />}
        <OneOf
          label="Provider"
          hint="Only this provider may be used"
          value={fields.provider}
          set={(provider) => set({ provider })}
          options={providers}
          none="Any"
        />
        <OneOf
          label="Shared budget"
          hint="Shared with all tokens that name the budget"
          value={fields.budgetId}
          set={(budgetId) => set({ budgetId })}
          options={budgets}
        />
        <ManyOf
          label="Access policies"
          options={accessPolicies}
          chosen={lists.access_policy_ids}
          set={(access_policy_ids) => setLists({ ...lists, access_policy_ids })}
        />
        <ManyOf
          label="Attached policies"
          hint="Policies that apply only to tokens that name them"
          options={policies}
          chosen={lists.policy_ids}
          set={(policy_ids) => setLists({ ...lists, policy_ids })}
        />
      </div>
    </details>
  )
}

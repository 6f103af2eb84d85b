/** Tokens that nobody uses or whose people have left: choose, and revoke together. */
import { useState } from 'preact/hooks'
import type { ReviewReason } from '../../../members/access-review/review-reasons.ts'
import { href, queryValue } from '../address.ts'
import { api } from '../api/routes.ts'
import { Filters } from '../parts/forms/filters.tsx'
import { Confirm } from '../parts/frame/dialog.tsx'
import { showToast } from '../parts/frame/toast.tsx'
import { ErrorNote, useLoaded } from '../parts/loaded.tsx'
import { Time } from '../parts/small.tsx'
import { Empty, TableCard } from '../parts/table.tsx'
import { hasPermission } from '../session.ts'

const reasons: Readonly<Record<ReviewReason, string>> = {
  owner_left: 'Its person left',
  creator_left: 'Its creator left',
  never_used: 'Never used',
  unused: 'No longer used',
}

const usualDays = '90'

export function AccessReview() {
  const [reason, days, cursor] = [queryValue('reason'), queryValue('days') ?? usualDays, queryValue('cursor')]
  const [chosen, setChosen] = useState<readonly string[]>([])
  const [revoking, setRevoking] = useState(false)
  const found = useLoaded(`access review ${reason} ${days} ${cursor}`, (signal) =>
    api('GET /v1/access-review', { query: { reason, unused_days: days, cursor, limit: 50 }, signal }),
  )
  const rows = found.value?.tokens
  const shown = chosen.filter((id) => rows?.some(({ token_id }) => token_id === id))
  const mayRevoke = hasPermission('tokens:revoke')
  return (
    <section class="stack">
      <div class="head">
        <p class="quiet">Tokens that nobody uses, or whose people have left. Tokens of gateways are not listed.</p>
        {mayRevoke && (
          <button type="button" class="danger" disabled={shown.length === 0} onClick={() => setRevoking(true)}>
            Revoke {shown.length === 0 ? 'chosen' : shown.length}
          </button>
        )}
      </div>
      <Filters
        filters={[
          {
            ...{ name: 'reason', label: 'Reason', usual: '' },
            options: [['', 'All'], ...Object.entries(reasons).map(([value, label]) => [value, label] as const)],
          },
          {
            ...{ name: 'days', label: 'Unused for', usual: usualDays },
            options: ['30', '90', '180', '365'].map((value) => [value, `${value} days`] as const),
          },
        ]}
      />
      {found.refusal !== null && <ErrorNote refusal={found.refusal} retry={found.retry} />}
      <TableCard
        label="Tokens to review"
        rows={rows === undefined && found.refusal !== null ? null : rows}
        next={found.value?.next_cursor}
        keyOf={({ token_id }) => token_id}
        choice={mayRevoke ? { chosen: shown, set: setChosen, nameOf: ({ name }) => name } : undefined}
        columns={[
          { title: 'Token', cell: ({ token_id, name }) => <a href={href(`/tokens/${token_id}`)}>{name}</a> },
          { title: 'Reason', cell: ({ reasons: holding }) => holding.map((each) => reasons[each]).join(', ') },
          {
            title: 'Last used',
            cell: ({ last_used_at }) => <Time at={last_used_at} about />,
            from: 'wide',
            nowrap: true,
          },
          { title: 'Created', cell: ({ created_at }) => <Time at={created_at} />, from: 'wider', nowrap: true },
        ]}
        empty={
          <Empty title="Nothing to review">
            <p>Every token in force is used, and its people are here.</p>
          </Empty>
        }
      />
      {revoking && (
        <Confirm
          title={`Revoke ${shown.length} ${shown.length === 1 ? 'token' : 'tokens'}`}
          action="Revoke"
          close={() => setRevoking(false)}
          work={async () => {
            await api('POST /v1/access-review/revoke', { body: { token_ids: shown } })
            setChosen([])
            showToast('Revoked')
            found.reload()
          }}
        >
          <p>Whatever still uses them is refused from then on. This cannot be undone.</p>
        </Confirm>
      )}
    </section>
  )
}

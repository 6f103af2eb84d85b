/** Who and what the traffic is of: the first few keys of a series, by name. */

import { reasonTitle } from '../../../../reason-words.ts'
import { href } from '../../address.ts'
import type { Summary, Totals } from '../../api/routes.ts'
import { dateAndTime, money, number, shortId } from '../../formats.ts'
import { type Loaded, Show } from '../../parts/loaded.tsx'
import { Table } from '../../parts/table.tsx'

const shownAtMost = 5
const isId = (key: string): boolean => /^[0-9a-f-]{36}$/.test(key)

interface TopProps {
  title: string
  of: Loaded<Totals>
  /** Where the figures above begin. */
  shownSince: string | undefined
  linkOf(key: string): string
  /** What stands where a request has no key. */
  none: string
}

/** The dearest first; what costs nothing, by its requests. */
export const Top = ({ title, of, shownSince, linkOf, none }: TopProps) => (
  <section class="card stack">
    <h2>{title}</h2>
    <Show of={of} rows={shownAtMost}>
      {(totals) => (
        <>
          <Table
            label={title}
            rows={totals.rows.slice(0, shownAtMost)}
            keyOf={({ key }) => key}
            linkOf={({ key }) => (key === '' ? undefined : linkOf(key))}
            columns={[
              { title: 'Name', cell: ({ key, name }) => name ?? keyName(key, none) },
              { title: 'Requests', right: true, cell: ({ requests }) => number(requests) },
              { title: 'Spend', right: true, cell: ({ cost }) => money(cost) },
            ]}
            empty={<p class="quiet">No request in this time range.</p>}
          />
          <Since totals={totals} shown={shownSince} />
        </>
      )}
    </Show>
  </section>
)

/** Says so where the sums of a table begin before the figures above it. */
const Since = ({ totals, shown }: { totals: Totals; shown: string | undefined }) =>
  totals.rows.length === 0 || totals.since === shown ? null : (
    <p class="small quiet">Since {dateAndTime(totals.since)}, because tokens are counted by the hour.</p>
  )

const keyName = (key: string, none: string): string => (key === '' ? none : isId(key) ? shortId(key) : key)

const reasonsAtMost = 6

/** Why requests were refused, changed or failed, in words with the code beside them. */
export const Reasons = ({ of }: { of: Loaded<Summary> }) => (
  <section class="card stack">
    <h2>Why requests were refused or changed</h2>
    <Show of={of} rows={5}>
      {({ top: { reasons } }) => (
        <Table
          label="Reasons"
          rows={reasons.rows.filter(({ key }) => key !== 'ok').slice(0, reasonsAtMost)}
          keyOf={({ key }) => key}
          linkOf={({ key }) => href('/traffic', { reason_code: key })}
          columns={[
            { title: 'Because', cell: ({ key }) => reasonTitle(key) },
            { title: 'Code', from: 'wide', cell: ({ key }) => <code>{key}</code> },
            { title: 'Requests', right: true, cell: ({ requests }) => number(requests) },
          ]}
          empty={<p class="quiet">No request was refused or changed in this time range.</p>}
        />
      )}
    </Show>
  </section>
)

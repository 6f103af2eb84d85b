/** Who and what the traffic is of: the first few keys of a series, by name. */

import { reasonTitle } from '../../../../reason-words.ts'
import { href } from '../../address.ts'
import type { Series } from '../../api/routes.ts'
import { money, number, shortId } from '../../formats.ts'
import { type Loaded, Show } from '../../parts/loaded.tsx'
import { Table } from '../../parts/table.tsx'
import { otherName } from '../traffic/spend-lines.ts'

const shownAtMost = 5
const isId = (key: string): boolean => /^[0-9a-f-]{36}$/.test(key)

interface TopProps {
  title: string
  of: Loaded<Series>
  linkOf(key: string): string
  /** What stands where a request has no key. */
  none: string
}

/** The dearest first; what costs nothing, by its requests. */
export const Top = ({ title, of, linkOf, none }: TopProps) => (
  <section class="card stack">
    <h2>{title}</h2>
    <Show of={of} rows={shownAtMost}>
      {({ totals }) => (
        <Table
          label={title}
          rows={totals
            .toSorted((left, right) => right.cost - left.cost || right.requests - left.requests)
            .slice(0, shownAtMost)}
          keyOf={({ key, rest }) => `${rest} ${key}`}
          linkOf={({ key, rest }) => (key === null || key === '' || rest ? undefined : linkOf(key))}
          columns={[
            { title: 'Name', cell: ({ key, rest, name }) => (rest ? otherName : (name ?? keyName(key, none))) },
            { title: 'Requests', right: true, cell: ({ requests }) => number(requests) },
            { title: 'Spend', right: true, cell: ({ cost }) => money(cost) },
          ]}
          empty={<p class="quiet">No request in this time range.</p>}
        />
      )}
    </Show>
  </section>
)

const keyName = (key: string | null, none: string): string =>
  key === null || key === '' ? none : isId(key) ? shortId(key) : key

const reasonsAtMost = 6

/** Why requests were refused, changed or failed, in words with the code beside them. */
export const Reasons = ({ of }: { of: Loaded<Series> }) => (
  <section class="card stack">
    <h2>Why requests were refused or changed</h2>
    <Show of={of} rows={5}>
      {({ totals }) => (
        <Table
          label="Reasons"
          rows={totals.filter(({ key, rest }) => key !== null && key !== 'ok' && !rest).slice(0, reasonsAtMost)}
          keyOf={({ key }) => key ?? ''}
          linkOf={({ key }) => href('/traffic', { reason_code: key })}
          columns={[
            { title: 'Because', cell: ({ key }) => reasonTitle(key ?? '') },
            { title: 'Code', from: 'wide', cell: ({ key }) => <code>{key}</code> },
            { title: 'Requests', right: true, cell: ({ requests }) => number(requests) },
          ]}
          empty={<p class="quiet">No request was refused or changed in this time range.</p>}
        />
      )}
    </Show>
  </section>
)

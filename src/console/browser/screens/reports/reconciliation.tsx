/** A provider's invoice beside what was booked: the file is compared by the API and kept nowhere. */
import { useState } from 'preact/hooks'
import { request } from '../../api/request.ts'
import type { ReconciliationReport } from '../../api/routes.ts'
import { money, monthTitle, number } from '../../formats.ts'
import type { Options } from '../../parts/forms/choice.tsx'
import { RequiredNote, SelectField } from '../../parts/forms/field.tsx'
import { useAction } from '../../parts/frame/dialog.tsx'
import { ErrorNote, Show, useLoaded } from '../../parts/loaded.tsx'
import { Empty, TableCard } from '../../parts/table.tsx'
import { showInvisible } from '../../parts/user-text.tsx'
import { recordOptions } from '../catalog/record-options.ts'

export function Reconciliation({ months }: { months: readonly string[] }) {
  const providers = useLoaded('providers', () => recordOptions('/v1/catalog/providers', 'name'))
  return (
    <Show of={providers} rows={4}>
      {(known) => <Comparison months={months} providers={known} />}
    </Show>
  )
}

function Comparison({ months, providers }: { months: readonly string[]; providers: Options }) {
  const [month, setMonth] = useState(months[1] ?? '')
  const [provider, setProvider] = useState('')
  const [file, setFile] = useState<File | null>(null)
  const [report, setReport] = useState<ReconciliationReport | null>(null)
  const { run, busy, refusal } = useAction(async () => {
    const csv = (await file?.text()) ?? ''
    return await request<ReconciliationReport>('POST', '/v1/usage/reconciliation', { body: { month, provider, csv } })
  }, setReport)
  return (
    <section class="stack">
      <form
        class="card form"
        onSubmit={(event) => {
          event.preventDefault()
          run()
        }}
      >
        <p class="quiet">
          Compares the CSV of costs or usage that OpenAI or Anthropic give with what was booked here. The file is not
          kept.
        </p>
        <RequiredNote />
        <SelectField
          label="Month"
          value={month}
          set={setMonth}
          options={months.map((name) => [name, monthTitle(name)] as const)}
        />
        <SelectField
          label="Provider"
          value={provider}
          set={setProvider}
          options={[['', 'Choose…'], ...providers.map(([name, label]) => [name, label] as const)]}
          required
        />
        <div class="field">
          <label for="invoice">CSV file</label>
          <input
            id="invoice"
            type="file"
            accept=".csv,text/csv"
            required
            onChange={(event) => setFile(event.currentTarget.files?.[0] ?? null)}
          />
        </div>
        {refusal !== null && <ErrorNote refusal={refusal} />}
        <div class="row">
          <button type="submit" class="primary" disabled={busy || file === null || provider === ''}>
            Compare
          </button>
        </div>
      </form>
      {report !== null && <Differences report={report} />}
    </section>
  )
}

const kindWords = {
  only_invoiced: 'Only on the invoice',
  only_booked: 'Only booked here',
  price: 'Another price',
  tokens: 'Other tokens',
  amount: 'Another amount',
} as const

type Amounts = ReconciliationReport['invoiced']

function amountText(amounts: Amounts): string {
  if (amounts === null) return '–'
  if (amounts.cost !== null) return money(amounts.cost)
  return `${number(amounts.input_tokens)} + ${number(amounts.output_tokens)} tokens`
}

function Differences({ report }: { report: ReconciliationReport }) {
  const { form, lines, other_months, alike, differences, left_out, invoiced, booked } = report
  return (
    <>
      <p>
        Read as {form}: {number(lines)} lines of {monthTitle(report.month)}
        {other_months > 0 && `, ${number(other_months)} of other months left out`}. The invoice says{' '}
        {amountText(invoiced)}, booked were {amountText(booked)}. {number(alike)} pairs of a day and a model are alike.
      </p>
      <TableCard
        label="Differences"
        rows={differences}
        keyOf={({ day, model, kind }) => `${day} ${model} ${kind}`}
        columns={[
          { title: 'Difference', cell: ({ kind }) => kindWords[kind] },
          { title: 'Day', cell: ({ day }) => day ?? '–', nowrap: true },
          { title: 'Model', cell: ({ model }) => showInvisible(model ?? '–') },
          { title: 'Invoice', right: true, cell: (row) => amountText(row.invoiced) },
          { title: 'Booked', right: true, cell: (row) => amountText(row.booked) },
        ]}
        empty={<Empty title="No differences" />}
      />
      {left_out > 0 && <p class="quiet">{number(left_out)} more differences are not listed.</p>}
    </>
  )
}

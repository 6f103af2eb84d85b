import { request } from '../../api/request.ts'
import { ago, milliseconds, number, percent } from '../../formats.ts'
import { ErrorNote, useLoaded } from '../../parts/loaded.tsx'
import { type Column, Empty, TableCard } from '../../parts/table.tsx'

/** A target as one gateway process measured it; the API's description explains each member. */
interface Target {
  provider: string
  model: string
  upstream_model: string
  worker: string
  calls: number
  error_ratio: number
  in_flight: number
  first_byte_p50_ms: number | null
  first_byte_p95_ms: number | null
  circuit_open: boolean
  keys: number
  keys_resting: number
  last_error: { at: string; reason: string; status: number | null } | null
}

/** How each target is, as each gateway process measured it in the last seconds. */
export function TargetHealth() {
  const found = useLoaded('targets', (signal) =>
    request<{ targets: Target[] }>('GET', '/v1/catalog/targets', { signal }),
  )
  return (
    <section class="stack close">
      <h2>Targets in use</h2>
      {found.refusal !== null && <ErrorNote refusal={found.refusal} retry={found.reload} />}
      <TableCard
        label="Targets in use"
        rows={found.value === undefined && found.refusal !== null ? null : found.value?.targets}
        keyOf={({ provider, model, upstream_model, worker }) => `${provider} ${model} ${upstream_model} ${worker}`}
        columns={columns}
        empty={
          <Empty title="No calls yet">
            <p>A target shows here once a gateway has called it.</p>
          </Empty>
        }
      />
    </section>
  )
}

const columns: readonly Column<Target>[] = [
  { title: 'Target', cell: ({ provider, model }) => `${provider}/${model}` },
  { title: 'Calls', cell: ({ calls }) => number(calls), right: true },
  { title: 'Errors', cell: ({ error_ratio }) => percent(error_ratio), right: true },
  { title: 'p50', cell: ({ first_byte_p50_ms: p50 }) => milliseconds(p50), right: true },
  { title: 'p95', cell: ({ first_byte_p95_ms: p95 }) => milliseconds(p95), right: true, from: 'wide' },
  { title: 'In flight', cell: ({ in_flight }) => number(in_flight), right: true, from: 'wide' },
  { title: 'State', cell: stateOf },
  { title: 'Last error', cell: errorOf, from: 'wide' },
]

function stateOf({ circuit_open: isOpen, keys, keys_resting: resting }: Target): string {
  if (isOpen) return 'Circuit open'
  return resting === 0 ? 'In use' : `${resting} of ${keys} keys rest`
}

function errorOf({ last_error: error }: Target): string {
  return error === null ? '–' : `${error.reason} ${error.status ?? ''} ${ago(error.at)}`
}

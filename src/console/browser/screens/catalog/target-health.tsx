/** How providers and their targets are, as each gateway process measured it in the last seconds. */
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { TargetHealth } from '../../../../fleet/protocol/wire.ts'
import { request } from '../../api/request.ts'
import { ago, milliseconds, number, percent } from '../../formats.ts'
import { Icon } from '../../parts/icon.tsx'
import { ErrorNote, useLoaded } from '../../parts/loaded.tsx'
import { type Column, Empty, TableCard } from '../../parts/table.tsx'

/** A target as one gateway process measured it. */
type Target = TargetHealth & { worker: string }

/** What was read last, for the column of providers too. */
const known = signal<readonly Target[]>([])

/** How a provider is, over all its targets: the worst of what was measured. */
export function ProviderHealth({ name }: { name: string }) {
  const targets = known.value.filter(({ provider }) => provider === name)
  if (targets.length === 0) return <span class="quiet">Not called yet</span>
  const open = targets.some(({ circuit_open }) => circuit_open)
  const errors = Math.max(...targets.map(({ error_ratio }) => error_ratio))
  const [verdict, icon] = open
    ? (['block', 'block'] as const)
    : errors >= 0.1
      ? (['rate_limit', 'error'] as const)
      : (['allow', 'allow'] as const)
  return (
    <span class="badge" data-verdict={verdict}>
      <Icon name={icon} />
      {open ? 'Circuit open' : errors >= 0.1 ? `${percent(errors)} fail` : 'Healthy'}
    </span>
  )
}

/** How each target is, as each gateway process measured it in the last seconds. */
export function TargetsInUse() {
  const found = useLoaded(
    'targets',
    (signal) => request<{ targets: Target[] }>('GET', '/v1/catalog/targets', { signal }),
    { everyMs: 10_000 },
  )
  useEffect(() => {
    known.value = found.value?.targets ?? []
  }, [found.value])
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

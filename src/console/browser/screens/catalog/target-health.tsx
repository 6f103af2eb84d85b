/** How providers and their targets are, as each gateway process measured it in the last seconds. */
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { TargetHealth } from '../../../../fleet/protocol/wire.ts'
import { reasonTitle } from '../../../../reason-words.ts'
import { request } from '../../api/request.ts'
import { ago, countNoun, milliseconds, number, percent, shortId } from '../../formats.ts'
import { Icon } from '../../parts/icon.tsx'
import { ErrorNote, useLoaded } from '../../parts/loaded.tsx'
import { type Column, Empty, TableCard } from '../../parts/table.tsx'
import { userText } from '../../parts/user-text.tsx'

/** A target as one gateway process measured it. */
type Target = TargetHealth & { worker: string }

/** What was read last, for the columns of providers and models too. */
const known = signal<readonly Target[]>([])

/** From this share of failed calls on, a target fails. */
const failingShare = 0.1

interface Health {
  /** 0 is healthy. */
  rank: 0 | 1 | 2
  word: string
}

const looks = [
  ['allow', 'allow'],
  ['rate_limit', 'error'],
  ['block', 'block'],
] as const

/** How one target is: the same words for it, its model and its provider. */
function healthOf({ circuit_open: isOpen, error_ratio: errors, keys, keys_resting: resting }: Target): Health {
  if (isOpen) return { rank: 2, word: 'Circuit open' }
  if (errors >= failingShare) return { rank: 1, word: `${percent(errors)} fail` }
  if (resting > 0) return { rank: resting < keys ? 0 : 1, word: `${resting} of ${countNoun(keys, 'key')} at rest` }
  return { rank: 0, word: 'Healthy' }
}

const HealthBadge = ({ health: { rank, word } }: { health: Health }) => {
  const [verdict, icon] = looks[rank]
  return (
    <span class="badge" data-verdict={verdict}>
      <Icon name={icon} />
      {word}
    </span>
  )
}

/** `openai/gpt-5`; a model whose name begins with its provider is not given it twice. */
const targetName = ({ provider, model }: Target): string =>
  model.startsWith(`${provider}/`) ? model : `${provider}/${model}`

/** How a provider or a model is: as the worst of its targets. */
export function HealthOfAll({ of }: { of: Partial<Pick<Target, 'provider' | 'model'>> }) {
  const targets = known.value.filter(
    ({ provider, model }) => provider === (of.provider ?? provider) && model === (of.model ?? model),
  )
  const [worst] = targets
    .map((target) => ({ target, health: healthOf(target) }))
    .toSorted((one, other) => other.health.rank - one.health.rank || other.target.error_ratio - one.target.error_ratio)
  if (worst === undefined) return <span class="quiet">Not called yet</span>
  return (
    <>
      <HealthBadge health={worst.health} />
      {worst.health.rank > 0 && targets.length > 1 && (
        <span class="small quiet"> {userText(targetName(worst.target))}</span>
      )}
    </>
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
      <p class="quiet">
        A target is a model at a provider. Each gateway process measures the last 64 calls that it made. A provider or a
        model is shown as the worst of its targets; from 10 % failed calls on, a target fails.
      </p>
      {found.refusal !== null && <ErrorNote refusal={found.refusal} retry={found.retry} />}
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
  { title: 'Target', cell: (target) => targetName(target) },
  { title: 'Calls', cell: ({ calls }) => number(calls), right: true },
  { title: 'Errors', cell: ({ error_ratio }) => percent(error_ratio), right: true },
  { title: 'p50', cell: ({ first_byte_p50_ms: p50 }) => milliseconds(p50), right: true },
  { title: 'p95', cell: ({ first_byte_p95_ms: p95 }) => milliseconds(p95), right: true, from: 'wide' },
  { title: 'In flight', cell: ({ in_flight }) => number(in_flight), right: true, from: 'wide' },
  { title: 'Health', cell: (target) => <HealthBadge health={healthOf(target)} /> },
  { title: 'Last error', cell: errorOf, from: 'wide' },
  { title: 'Gateway process', cell: ({ worker }) => <code title={worker}>{shortId(worker)}</code>, from: 'wider' },
]

function errorOf({ last_error: error }: Target): string {
  return error === null
    ? '–'
    : `${reasonTitle(error.reason)}${error.status === null ? '' : ` (${error.status})`}, ${ago(error.at)}`
}

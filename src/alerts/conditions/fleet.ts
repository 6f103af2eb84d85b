/**
 * Conditions about gateways and targets, and findings that other rooms made.
 *
 * SQL text: compares heartbeats in the time of the database.
 */
import { databaseTime } from '../../store/open.ts'
import { readNames } from '../../store/schema/gateway-name.ts'
import type { AlertSources, Measured } from '../dependencies.ts'
import type { Alert } from '../stored-alert.ts'
import type { Round } from './round.ts'

interface StaleWorker {
  worker: string
  gateway_id: string
  silent: number
}

export async function gatewayStale(
  { scope, thresholds }: Alert,
  { dependencies: { ledger } }: Round,
): Promise<Measured[]> {
  const rows = await ledger.read<StaleWorker>(
    `select worker, gateway_id, (${databaseTime} - last_heartbeat_at) / 1000 as silent from workers
      where left_at is null and released_at is null and lost_at is null and last_heartbeat_at > 0
        and last_heartbeat_at < ${databaseTime} - ?`,
    [Math.min(...thresholds) * 1000],
  )
  const found = scope.kind === 'gateway' ? rows.filter(({ gateway_id }) => gateway_id === scope.id) : rows
  if (found.length === 0) return []
  const nameOf = await readNames(
    ledger,
    found.map(({ gateway_id }) => gateway_id),
  )
  return found.map(({ worker, gateway_id, silent }) => ({
    subject: worker,
    value: silent,
    about: () =>
      `The gateway ${nameOf(gateway_id)} has sent no heartbeat for ${silent} seconds (process ${worker}). It refuses requests once what it knows is too old.`,
  }))
}

export async function circuitOpen({ scope }: Alert, { dependencies: { sources } }: Round): Promise<Measured[] | null> {
  const targets = sources.targets?.() ?? null
  if (targets === null) return null
  const open = targets.filter(
    ({ circuit_open, provider }) => circuit_open && (scope.kind !== 'provider' || scope.id === provider),
  )
  return [...Map.groupBy(open, ({ provider, model }) => `${provider}/${model}`)].map(([subject, { length }]) => ({
    subject,
    value: length,
    about: () =>
      `${length === 1 ? 'A gateway process passes' : `${length} gateway processes pass`} ${subject} over after failures.`,
  }))
}

/** What another room found, asked once for all alerts. */
export const foundBy =
  (source: 'sinkLag' | 'doctor' | 'verify') =>
  async (_alert: Alert, round: Round): Promise<readonly Measured[] | null> => {
    const ask: AlertSources[typeof source] = round.dependencies.sources[source]
    return ask === undefined ? null : await round.once(source, ask)
  }

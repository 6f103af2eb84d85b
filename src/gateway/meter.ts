/**
 * What the gateway counts about itself: plain numbers in memory, written out in Prometheus' text form when asked. Labels
 * are bounded: families, verdicts, status classes and reasons of ours, never a token, a user, a request id or a model
 * name that a caller made up.
 */
import type { LaneCounters } from '../fleet/lane.ts'
import type { Exchange, Outcome } from './exchange.ts'

const durationBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]
const firstTokenBounds = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

export interface Meter {
  finished(exchange: Exchange, outcome: Outcome, monotonic: number): void
  /** The text exposition. `inFlight` and the lane's gauges are read at this moment. */
  text(inFlight: number, lane: LaneCounters): string
}

const laneGauges: readonly [keyof LaneCounters, string, string][] = [
  ['stateVersion', 'gatehouse_state_version', 'Version of the state that decisions are made by'],
  ['secondsSinceFresh', 'gatehouse_state_staleness_seconds', 'Time since the last fresh news of the primary'],
  ['connected', 'gatehouse_stream_connected', '1 while the change stream is connected'],
  ['outboxBytes', 'gatehouse_outbox_bytes', "Size of the outbox's segments on disk"],
  ['outboxUnshipped', 'gatehouse_outbox_unshipped_events', 'Events that the control plane has not acknowledged'],
  ['openExchanges', 'gatehouse_open_exchanges', 'Exchanges opened and not yet closed'],
  ['denials', 'gatehouse_denials', 'Tokens denied ahead of the state'],
  ['checkpointRegressions', 'gatehouse_checkpoint_regressions', 'Checkpoints of the state that went back'],
  ['tokensInMemory', 'gatehouse_tokens_in_memory', 'Token records held in memory'],
  ['replicatorRestarts', 'gatehouse_replicator_restarts', 'Starts of the replicator that were not the first'],
  ['replicatedBytes', 'gatehouse_replicated_bytes', 'Bytes of the state that came from the primary'],
]

interface Histogram {
  readonly bounds: readonly number[]
  readonly counts: number[]
  sum: number
  count: number
}

export function createMeter(): Meter {
  const requests = new Map<string, number>()
  const upstreamErrors = new Map<string, number>()
  const duration = histogram(durationBounds)
  const firstToken = histogram(firstTokenBounds)
  return {
    finished(exchange, { verdict, status }, monotonic) {
      const statusClass = status === null ? 'none' : `${Math.floor(status / 100)}xx`
      increment(requests, `family="${exchange.family}",verdict="${verdict}",status="${statusClass}"`)
      for (const { reason } of exchange.attempts) {
        if (reason !== 'ok' && reason !== 'client.left') increment(upstreamErrors, `reason="${reason}"`)
      }
      observe(duration, (monotonic - exchange.startedMonotonic) / 1000)
      if (exchange.firstTokenMs !== null) observe(firstToken, exchange.firstTokenMs / 1000)
    },
    text: (inFlight, lane) =>
      [
        counterText('gatehouse_requests_total', 'Requests by family, verdict and status class', requests),
        gaugeText('gatehouse_requests_in_flight', 'Requests that run at this moment', inFlight),
        counterText('gatehouse_upstream_errors_total', 'Calls to providers that failed, by reason', upstreamErrors),
        histogramText('gatehouse_request_duration_seconds', 'From the request to the end of its answer', duration),
        histogramText('gatehouse_first_token_seconds', 'From the request to the first generated text', firstToken),
        ...laneGauges.map(([counter, name, help]) => gaugeText(name, help, lane[counter])),
      ].join(''),
  }
}

const histogram = (bounds: readonly number[]): Histogram => ({
  bounds,
  counts: bounds.map(() => 0),
  sum: 0,
  count: 0,
})

function observe(histogram: Histogram, value: number): void {
  histogram.sum += value
  histogram.count += 1
  const { bounds, counts } = histogram
  for (let index = 0; index < bounds.length; index++) {
    if (value <= (bounds[index] ?? 0)) {
      counts[index] = (counts[index] ?? 0) + 1
      return
    }
  }
}

const increment = (counters: Map<string, number>, labels: string): void => {
  counters.set(labels, (counters.get(labels) ?? 0) + 1)
}

const head = (name: string, help: string, type: string) => `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`

const counterText = (name: string, help: string, counters: ReadonlyMap<string, number>): string =>
  head(name, help, 'counter') + [...counters].map(([labels, value]) => `${name}{${labels}} ${value}\n`).join('')

const gaugeText = (name: string, help: string, value: number): string =>
  `${head(name, help, 'gauge')}${name} ${value}\n`

function histogramText(name: string, help: string, { bounds, counts, sum, count }: Histogram): string {
  let below = 0
  const buckets = bounds.map((bound, index) => {
    below += counts[index] ?? 0
    return `${name}_bucket{le="${bound}"} ${below}\n`
  })
  return `${head(name, help, 'histogram')}${buckets.join('')}${name}_bucket{le="+Inf"} ${count}\n${name}_sum ${sum}\n${name}_count ${count}\n`
}

/**
 * The metrics of the gateway. Labels have a bounded number of values: families, verdicts, status classes, policy kinds,
 * error codes and reasons; never a token, a user, a request id or a model name chosen by a caller. All metrics are
 * listed in handbook/reference/metrics.md.
 */
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { CostAttribution } from '../../events/event.ts'
import { failures } from '../../failure.ts'
import type { WorkerCounters } from '../../fleet/protocol/worker.ts'
import { brokenReason } from '../../policies/stages/run-stage.ts'
import type { MemoryReadings } from '../admission/memory-budget.ts'
import type { Exchange, Outcome } from '../exchange.ts'
import { type TargetReading, targetMetrics } from './target-metrics.ts'

const durationBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]
const firstTokenBounds = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

/** Values that are read when the metrics are requested. */
export interface MeterReadings {
  inFlight: number
  worker: WorkerCounters
  memory: MemoryReadings
  openCircuits: number
  cachedBytes: number
  targets: Iterable<TargetReading>
  spans: { readonly exported: number; readonly dropped: number }
  mcp: { readonly sessions: number; readonly unsolicited: number; readonly evicted: number }
}

export interface Meter {
  finished(exchange: Exchange, outcome: Outcome, monotonic: number, cost?: CostAttribution): void
  /** A request that was sent a second time, or was not. */
  shadowed(result: 'answered' | 'failed' | 'skipped', cost: CostAttribution | undefined): void
  /** Telemetry of a client that the collector took. */
  telemetry(signal: string, bytes: number): void
  /** All metrics as they are now: as text, or as JSON for another process. */
  read(readings: MeterReadings): Registry
}

const statusClasses = ['none', '1xx', '2xx', '3xx', '4xx', '5xx']

/**
 * What was added to a counter since the metrics were read last. The library finds the labels of each call anew, which
 * costs several times as much as adding to a number here.
 */
class Sum<Label extends string> {
  readonly #counter: Counter<Label>
  readonly #amounts = new Map<string, { values: string[]; amount: number }>()

  constructor(counter: Counter<Label>) {
    this.#counter = counter
  }

  /** `values` are those of the counter's labels, in their order. */
  add(amount: number, ...values: string[]): void {
    const key = values.length === 1 ? (values[0] ?? '') : values.join(' ')
    const known = this.#amounts.get(key)
    if (known === undefined) this.#amounts.set(key, { values, amount })
    else known.amount += amount
  }

  /** Adds the amounts to the counter. */
  report(): void {
    for (const { values, amount } of this.#amounts.values()) this.#counter.labels(...values).inc(amount)
    this.#amounts.clear()
  }
}

type GaugeRow = readonly [name: string, help: string, value: (readings: MeterReadings) => number]

const gaugeRows: readonly GaugeRow[] = [
  ['gatehouse_requests_in_flight', 'Requests in flight', ({ inFlight }) => inFlight],
  [
    'gatehouse_request_memory_bytes',
    'Memory reserved for request bodies, buffered answers and conversations of WebSockets',
    ({ memory }) => memory.smallBytes + memory.largeBytes + memory.answerBytes + memory.conversationBytes,
  ],
  ['gatehouse_memory_waiting', 'Request bodies and answers that wait for memory', ({ memory }) => memory.waiting],
  [
    'gatehouse_circuits_open',
    'Paths that are skipped because their circuit is open',
    ({ openCircuits }) => openCircuits,
  ],
  ['gatehouse_cache_memory_bytes', 'Memory of cached answers', ({ cachedBytes }) => cachedBytes],
  ['gatehouse_mcp_sessions', 'Open MCP sessions', ({ mcp }) => mcp.sessions],
  ...workerRows([
    ['stateVersion', 'gatehouse_state_version', 'Version of the state in use'],
    [
      'secondsSinceFresh',
      'gatehouse_state_staleness_seconds',
      'Seconds since the replica was last known to be current',
    ],
    ['connected', 'gatehouse_stream_connected', '1 while the change stream is connected'],
    ['outboxBytes', 'gatehouse_outbox_bytes', "Size of the outbox's segments on disk"],
    [
      'outboxUnacknowledged',
      'gatehouse_outbox_unacknowledged_events',
      'Events that the control plane has not acknowledged',
    ],
    ['openExchanges', 'gatehouse_open_exchanges', 'Exchanges opened and not yet closed'],
    [
      'pendingRevocations',
      'gatehouse_pending_revocations',
      'Tokens refused before the copy of the state shows their revocation',
    ],
    ['leaseMessages', 'gatehouse_lease_messages', 'Messages about limits sent to the control plane since the start'],
    ['checkpointRegressions', 'gatehouse_checkpoint_regressions', 'Times that the state went back to an older version'],
    ['tokensInMemory', 'gatehouse_tokens_in_memory', 'Token records held in memory'],
    ['replicatorRestarts', 'gatehouse_replicator_restarts', 'Restarts of the replicator'],
    ['replicatedBytes', 'gatehouse_replicated_bytes', 'Bytes of the state that came from the primary'],
  ]),
]

function workerRows(rows: readonly [counter: keyof WorkerCounters, name: string, help: string][]): GaugeRow[] {
  return rows.map(([counter, name, help]) => [name, help, ({ worker }) => worker[counter]])
}

export function createMeter(): Meter {
  const registry = new Registry()
  const registers = [registry]
  const counter = <const Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
    new Counter({ name, help, labelNames, registers })
  const sums: Sum<string>[] = []
  const summed = <Label extends string>(of: Counter<Label>): Sum<Label> => {
    const sum = new Sum(of)
    sums.push(sum)
    return sum
  }
  const histogram = (name: string, help: string, buckets: number[]) =>
    new Histogram({ name, help, labelNames: ['family'], buckets, registers })
  const requests = summed(
    counter(
      'gatehouse_requests_total',
      'Requests by family, verdict and status class',
      ...(['family', 'verdict', 'status'] as const),
    ),
  )
  const refusals = counter('gatehouse_refusals_total', "Requests that were refused, by the error's code", 'code')
  const upstreamErrors = counter(
    'gatehouse_upstream_errors_total',
    'Calls to providers that failed, by reason',
    'reason',
  )
  const policyVerdicts = counter(
    'gatehouse_policy_verdicts_total',
    'Policy verdicts other than allow, by kind',
    ...(['kind', 'verdict'] as const),
  )
  const policyErrors = counter('gatehouse_policy_errors_total', 'Policy evaluations that failed')
  const tokens = summed(counter('gatehouse_tokens_total', 'Tokens of requests and answers, by direction', 'direction'))
  const costs = summed(counter('gatehouse_cost_usd_total', 'Cost of answers in US dollars'))
  const unpriced = summed(counter('gatehouse_unpriced_total', 'Answers whose model has no price'))
  const cacheResults = counter(
    'gatehouse_cache_requests_total',
    'Requests that a cache policy applies to, by result',
    'result',
  )
  const shadows = counter('gatehouse_shadow_requests_total', 'Requests for shadow targets, by result', 'result')
  const shadowCosts = counter('gatehouse_shadow_cost_usd_total', 'Cost of shadows in US dollars')
  const duration = histogram(
    'gatehouse_request_duration_seconds',
    'Seconds from the request to its end',
    durationBounds,
  )
  const firstToken = histogram(
    'gatehouse_first_token_seconds',
    'Seconds from the request to the first text',
    firstTokenBounds,
  )
  const spansByOutcome = counter('gatehouse_trace_spans_total', 'Spans by result', 'outcome')
  const telemetryBytes = counter(
    'gatehouse_telemetry_bytes_total',
    "Clients' telemetry that the collector took, in bytes",
    'signal',
  )
  const discardedMessages = counter(
    'gatehouse_mcp_discarded_messages_total',
    'Messages of MCP servers that were discarded, by reason',
    'reason',
  )
  const gauges = gaugeRows.map(([name, help, value]) => ({ gauge: new Gauge({ name, help, registers }), value }))
  const setTargets = targetMetrics(registers)
  const countUsage = ({ input_tokens, output_tokens, cost }: CostAttribution): void => {
    if (input_tokens) tokens.add(input_tokens, 'input')
    if (output_tokens) tokens.add(output_tokens, 'output')
    if (cost === null) unpriced.add(1)
    else costs.add(cost)
  }
  return {
    finished(exchange, outcome, monotonic, cost) {
      const { family, attempts, policyResults, firstTokenMs } = exchange
      const { verdict, status, reason } = outcome
      requests.add(1, family, verdict, statusClasses[Math.floor((status ?? 0) / 100)] ?? 'none')
      if (verdict !== 'allow' && Object.hasOwn(failures, reason)) refusals.inc({ code: reason })
      for (const { reason } of attempts) {
        if (reason !== 'ok' && reason !== 'client.left') upstreamErrors.inc({ reason })
      }
      for (const { kind, verdict, reason_code } of policyResults) {
        if (verdict !== 'allow') policyVerdicts.inc({ kind, verdict })
        if (reason_code === brokenReason) policyErrors.inc()
      }
      if (cost !== undefined) countUsage(cost)
      if (exchange.cache !== null) cacheResults.inc({ result: exchange.cache.result })
      duration.observe({ family }, (monotonic - exchange.startedMonotonic) / 1000)
      if (firstTokenMs !== null) firstToken.observe({ family }, firstTokenMs / 1000)
    },
    shadowed(result, cost) {
      shadows.inc({ result })
      shadowCosts.inc(cost?.cost ?? 0)
    },
    telemetry(signal, bytes) {
      telemetryBytes.inc({ signal }, bytes)
    },
    read(readings) {
      const { spans, mcp } = readings
      for (const sum of sums) sum.report()
      for (const { gauge, value } of gauges) gauge.set(value(readings))
      setTargets(readings.targets)
      spansByOutcome.reset()
      spansByOutcome.inc({ outcome: 'exported' }, spans.exported)
      spansByOutcome.inc({ outcome: 'dropped' }, spans.dropped)
      discardedMessages.reset()
      discardedMessages.inc({ reason: 'stray' }, mcp.unsolicited)
      discardedMessages.inc({ reason: 'no_room' }, mcp.evicted)
      return registry
    },
  }
}

/**
 * The metrics of the gateway. Labels have a bounded number of values: families, verdicts, status classes, policy kinds,
 * error codes and reasons; never a token, a user, a request id or a model name chosen by a caller. All metrics are
 * listed in handbook/reference/metrics.md.
 */
import type { CostAttribution } from '../../events/event.ts'
import { failures } from '../../failure.ts'
import type { WorkerCounters } from '../../fleet/protocol/worker.ts'
import { fromNano, toNano } from '../../lib/money.ts'
import { brokenReason } from '../../policies/stages/run-stage.ts'
import {
  count,
  counterText,
  gaugeText,
  type Histogram,
  histogram,
  histogramsText,
  type LabelledCounts,
  observe,
} from '../../telemetry/exposition.ts'
import type { MemoryReadings } from '../admission/memory-budget.ts'
import type { Exchange, Outcome } from '../exchange.ts'

const durationBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]
const firstTokenBounds = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

/** Values that are read when the metrics are requested. */
export interface MeterReadings {
  inFlight: number
  worker: WorkerCounters
  memory: MemoryReadings
  openCircuits: number
  spans: { readonly exported: number; readonly dropped: number }
  mcp: { readonly sessions: number; readonly unsolicited: number; readonly evicted: number }
}

export interface Meter {
  finished(exchange: Exchange, outcome: Outcome, monotonic: number, cost?: CostAttribution): void
  /** The metrics in the Prometheus text format. */
  text(readings: MeterReadings): string
}

const workerGauges: readonly [keyof WorkerCounters, string, string][] = [
  ['stateVersion', 'gatehouse_state_version', 'Version of the state in use'],
  ['secondsSinceFresh', 'gatehouse_state_staleness_seconds', 'Seconds since the replica was last known to be current'],
  ['connected', 'gatehouse_stream_connected', '1 while the change stream is connected'],
  ['outboxBytes', 'gatehouse_outbox_bytes', "Size of the outbox's segments on disk"],
  ['outboxUnshipped', 'gatehouse_outbox_unshipped_events', 'Events that the control plane has not acknowledged'],
  ['openExchanges', 'gatehouse_open_exchanges', 'Exchanges opened and not yet closed'],
  ['denials', 'gatehouse_denials', 'Revocation entries that are not in the state yet'],
  ['usageAsks', 'gatehouse_usage_asks', 'Messages about limits sent to the control plane since the start'],
  ['checkpointRegressions', 'gatehouse_checkpoint_regressions', 'Times that the state went back to an older version'],
  ['tokensInMemory', 'gatehouse_tokens_in_memory', 'Token records held in memory'],
  ['replicatorRestarts', 'gatehouse_replicator_restarts', 'Restarts of the replicator'],
  ['replicatedBytes', 'gatehouse_replicated_bytes', 'Bytes of the state that came from the primary'],
]

/** A counter without labels starts at 0, so that its first increment is visible as a rate. */
const unlabelled = (): LabelledCounts => new Map([['', 0]])

export function createMeter(): Meter {
  const counts = {
    requests: new Map<string, number>(),
    refusals: new Map<string, number>(),
    upstreamErrors: new Map<string, number>(),
    policyVerdicts: new Map<string, number>(),
    policyErrors: unlabelled(),
    tokens: new Map<string, number>(),
    cost: unlabelled(),
    unpriced: unlabelled(),
  }
  const duration = new Map<string, Histogram>()
  const firstToken = new Map<string, Histogram>()
  return {
    finished(exchange, outcome, monotonic, cost) {
      const { verdict, status, reason } = outcome
      const statusClass = status === null ? 'none' : `${Math.floor(status / 100)}xx`
      count(counts.requests, `family="${exchange.family}",verdict="${verdict}",status="${statusClass}"`)
      if (verdict !== 'allow' && Object.hasOwn(failures, reason)) count(counts.refusals, `code="${reason}"`)
      for (const { reason } of exchange.attempts) {
        if (reason !== 'ok' && reason !== 'client.left') count(counts.upstreamErrors, `reason="${reason}"`)
      }
      countPolicies(counts, exchange)
      countUsage(counts, cost)
      observe(histogramOf(duration, exchange.family, durationBounds), (monotonic - exchange.startedMonotonic) / 1000)
      if (exchange.firstTokenMs === null) return
      observe(histogramOf(firstToken, exchange.family, firstTokenBounds), exchange.firstTokenMs / 1000)
    },
    text: ({ inFlight, memory, worker, openCircuits, spans, mcp }) =>
      [
        counterText('gatehouse_requests_total', 'Requests by family, verdict and status class', counts.requests),
        gaugeText('gatehouse_requests_in_flight', 'Requests in flight', inFlight),
        gaugeText(
          'gatehouse_request_memory_bytes',
          'Memory reserved for request bodies and buffered answers',
          memory.smallBytes + memory.largeBytes + memory.answerBytes,
        ),
        gaugeText('gatehouse_memory_waiting', 'Request bodies and answers that wait for memory', memory.waiting),
        counterText('gatehouse_refusals_total', "Requests that were refused, by the error's code", counts.refusals),
        counterText(
          'gatehouse_upstream_errors_total',
          'Calls to providers that failed, by reason',
          counts.upstreamErrors,
        ),
        gaugeText('gatehouse_circuits_open', 'Paths that are skipped because their circuit is open', openCircuits),
        counterText(
          'gatehouse_policy_verdicts_total',
          'Policy verdicts other than allow, by kind and verdict',
          counts.policyVerdicts,
        ),
        counterText('gatehouse_policy_errors_total', 'Policy evaluations that failed', counts.policyErrors),
        counterText('gatehouse_tokens_total', 'Tokens of requests and answers, by direction', counts.tokens),
        counterText('gatehouse_cost_usd_total', 'Cost of answers in US dollars', inDollars(counts.cost)),
        counterText('gatehouse_unpriced_total', 'Answers whose model has no price', counts.unpriced),
        histogramsText('gatehouse_request_duration_seconds', 'Seconds from the request to its end', 'family', duration),
        histogramsText(
          'gatehouse_first_token_seconds',
          'Seconds from the request to the first text',
          'family',
          firstToken,
        ),
        counterText('gatehouse_trace_spans_total', 'Spans by result', spanCounts(spans)),
        gaugeText('gatehouse_mcp_sessions', 'Open MCP sessions', mcp.sessions),
        counterText(
          'gatehouse_mcp_discarded_messages_total',
          'Messages of MCP servers that were discarded, by reason',
          new Map([
            ['reason="unsolicited"', mcp.unsolicited],
            ['reason="no_room"', mcp.evicted],
          ]),
        ),
        ...workerGauges.map(([counter, name, help]) => gaugeText(name, help, worker[counter])),
      ].join(''),
  }
}

function countPolicies(
  counts: { policyVerdicts: LabelledCounts; policyErrors: LabelledCounts },
  { policyResults }: Exchange,
): void {
  for (const { kind, verdict, reason_code } of policyResults) {
    if (verdict !== 'allow') count(counts.policyVerdicts, `kind="${kind}",verdict="${verdict}"`)
    if (reason_code === brokenReason) count(counts.policyErrors, '')
  }
}

function countUsage(
  counts: { tokens: LabelledCounts; cost: LabelledCounts; unpriced: LabelledCounts },
  cost: CostAttribution | undefined,
): void {
  if (cost === undefined) return
  if (cost.input_tokens) count(counts.tokens, 'direction="input"', cost.input_tokens)
  if (cost.output_tokens) count(counts.tokens, 'direction="output"', cost.output_tokens)
  if (cost.cost === null) count(counts.unpriced, '')
  else count(counts.cost, '', toNano(cost.cost))
}

function histogramOf(histograms: Map<string, Histogram>, family: string, bounds: readonly number[]): Histogram {
  let found = histograms.get(family)
  if (found === undefined) {
    found = histogram(bounds)
    histograms.set(family, found)
  }
  return found
}

const inDollars = (nano: LabelledCounts): LabelledCounts =>
  new Map([...nano].map(([labels, cost]) => [labels, fromNano(cost)]))

const spanCounts = ({ exported, dropped }: MeterReadings['spans']): LabelledCounts =>
  new Map([
    ['outcome="exported"', exported],
    ['outcome="dropped"', dropped],
  ])

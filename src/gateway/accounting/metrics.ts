/**
 * What the gateway counts about itself. Labels are bounded: families, verdicts, status classes, kinds of policies, codes
 * and reasons of ours; never a token, a user, a request id or a model name that a caller made up. What there is stands in
 * handbook/reference/metrics.md.
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

/** What is looked up when the text is made. */
export interface MeterReadings {
  inFlight: number
  worker: WorkerCounters
  memory: MemoryReadings
  openCircuits: number
  spans: { readonly exported: number; readonly dropped: number }
  mcp: { readonly sessions: number; readonly strays: number; readonly evicted: number }
}

export interface Meter {
  finished(exchange: Exchange, outcome: Outcome, monotonic: number, cost?: CostAttribution): void
  /** The text exposition. */
  text(readings: MeterReadings): string
}

const workerGauges: readonly [keyof WorkerCounters, string, string][] = [
  ['stateVersion', 'gatehouse_state_version', 'Version of the state that decisions are made by'],
  [
    'secondsSinceFresh',
    'gatehouse_state_staleness_seconds',
    'Time since the last fresh answer of the primary database',
  ],
  ['connected', 'gatehouse_stream_connected', '1 while the change stream is connected'],
  ['outboxBytes', 'gatehouse_outbox_bytes', "Size of the outbox's segments on disk"],
  ['outboxUnshipped', 'gatehouse_outbox_unshipped_events', 'Events that the control plane has not acknowledged'],
  ['openExchanges', 'gatehouse_open_exchanges', 'Exchanges opened and not yet closed'],
  [
    'pendingRevocations',
    'gatehouse_pending_revocations',
    'Tokens refused before the copy of the state shows their revocation',
  ],
  ['leaseMessages', 'gatehouse_lease_messages', 'Messages about limits sent to the control plane since the start'],
  ['checkpointRegressions', 'gatehouse_checkpoint_regressions', 'Checkpoints of the state that went back'],
  ['tokensInMemory', 'gatehouse_tokens_in_memory', 'Token records held in memory'],
  ['replicatorRestarts', 'gatehouse_replicator_restarts', 'Starts of the replicator that were not the first'],
  ['replicatedBytes', 'gatehouse_replicated_bytes', 'Bytes of the state that came from the primary'],
]

/** A counter without labels is there from the start, so that its rate is known from the first time it counts. */
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
        gaugeText('gatehouse_requests_in_flight', 'Requests that run at this moment', inFlight),
        gaugeText(
          'gatehouse_request_memory_bytes',
          'Memory that request bodies and buffered answers are counted with',
          memory.smallBytes + memory.largeBytes + memory.answerBytes,
        ),
        gaugeText('gatehouse_memory_waiting', 'Request bodies and answers that wait for memory', memory.waiting),
        counterText('gatehouse_refusals_total', "Requests that were refused, by the error's code", counts.refusals),
        counterText(
          'gatehouse_upstream_errors_total',
          'Calls to providers that failed, by reason',
          counts.upstreamErrors,
        ),
        gaugeText('gatehouse_circuits_open', 'Paths that are passed over at this moment', openCircuits),
        counterText(
          'gatehouse_policy_verdicts_total',
          'What policies said other than allow, by kind',
          counts.policyVerdicts,
        ),
        counterText('gatehouse_policy_errors_total', 'Policies that could not decide', counts.policyErrors),
        counterText('gatehouse_tokens_total', 'Tokens of requests and answers, by direction', counts.tokens),
        counterText('gatehouse_cost_usd_total', 'What answers cost', inDollars(counts.cost)),
        counterText('gatehouse_unpriced_total', 'Answers whose model has no price', counts.unpriced),
        histogramsText('gatehouse_request_duration_seconds', 'From the request to its end', 'family', duration),
        histogramsText('gatehouse_first_token_seconds', 'From the request to the first text', 'family', firstToken),
        counterText('gatehouse_trace_spans_total', 'Spans by what became of them', spanCounts(spans)),
        gaugeText('gatehouse_mcp_sessions', 'MCP sessions that are kept', mcp.sessions),
        counterText(
          'gatehouse_mcp_useless_messages_total',
          'What MCP servers sent and nobody was given, by why',
          new Map([
            ['reason="stray"', mcp.strays],
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

/**
 * What the control plane counts, as Prometheus text (handbook/reference/http.md). Labels are bounded: a route's pattern
 * and never an address, a class of status, an event type; never a token, a user or a request id.
 */
import type { Event } from '../events/event.ts'
import {
  count,
  counterText,
  gaugeText,
  type Histogram,
  histogram,
  histogramsText,
  histogramText,
  type LabelledCounts,
  observe,
} from './exposition.ts'

export interface ControlPlaneMetrics {
  /** `path` is the route's pattern, or null where there was no such route. */
  answered(answer: { method: string; path: string | null; status: number; seconds: number }): void
  /** Events taken from gateways, now and for the first time. */
  ingested(events: readonly Pick<Event, 'event_type'>[]): void
  /** How long a transaction that took events in held the ledger and this process. */
  sliced(seconds: number): void
  /** How long a change took until all workers had acknowledged it or the wait was over. */
  propagated(seconds: number): void
  /** Prometheus text exposition. */
  text(): Promise<string>
}

const knownMethods = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'])

const answerBounds = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 2.5, 10]
const sliceBounds = [0.001, 0.0025, 0.005, 0.0075, 0.01, 0.025, 0.05, 0.1, 0.5]
const propagationBounds = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 3]

/** How the state database has answered. */
export interface StateReads {
  /** Since it was last read. */
  ageSeconds: number
  /** Times at which it was not read for more than three seconds, and their sum. */
  stalls: number
  stallSeconds: number
}

/** Asked for when the text is made. */
export interface ControlPlaneReadings {
  connectedWorkers(): Promise<number>
  stateReads(): StateReads
}

export function createControlPlaneMetrics(readings: ControlPlaneReadings): ControlPlaneMetrics {
  const requests: LabelledCounts = new Map()
  const durations = new Map<string, Histogram>()
  const events: LabelledCounts = new Map()
  const slices = histogram(sliceBounds)
  const propagations = histogram(propagationBounds)
  let runtime: Promise<() => Promise<string>> | null = null
  return {
    answered({ method, path, status, seconds }) {
      const route = path ?? 'none'
      count(requests, `method="${knownMethods.has(method) ? method : 'other'}",route="${route}",status="${status}"`)
      const known = durations.get(route) ?? histogram(answerBounds)
      durations.set(route, known)
      observe(known, seconds)
    },
    ingested(taken) {
      for (const { event_type } of taken) count(events, `type="${event_type}"`)
    },
    sliced: (seconds) => observe(slices, seconds),
    propagated: (seconds) => observe(propagations, seconds),
    async text() {
      runtime ??= runtimeFigures()
      const { ageSeconds, stalls, stallSeconds } = readings.stateReads()
      return [
        counterText(
          'gatehouse_http_requests_total',
          'Answers of the control plane by route pattern and status',
          requests,
        ),
        histogramsText(
          'gatehouse_http_request_seconds',
          "Time until an answer's headers, by route pattern",
          'route',
          durations,
        ),
        counterText('gatehouse_events_ingested_total', 'Events taken from gateways, by type', events),
        histogramText(
          'gatehouse_ingest_slice_seconds',
          'Time that one transaction of events from gateways held the ledger',
          slices,
        ),
        histogramText(
          'gatehouse_propagation_seconds',
          'Time from a change to the last acknowledgement that was waited for',
          propagations,
        ),
        gaugeText(
          'gatehouse_connected_workers',
          'Gateway workers that some control plane heard of in the last seconds',
          await readings.connectedWorkers(),
        ),
        gaugeText('gatehouse_state_read_age_seconds', 'Time since the state database was last read', ageSeconds),
        counterText(
          'gatehouse_state_stalls_total',
          'Times at which the state database was not read for more than three seconds',
          new Map([['', stalls]]),
        ),
        counterText(
          'gatehouse_state_stall_seconds_total',
          'Time that these stalls lasted together',
          new Map([['', stallSeconds]]),
        ),
        await (await runtime)(),
      ].join('')
    },
  }
}

/** What the runtime tells of the process. Loaded when it is first asked for: no start needs it. */
async function runtimeFigures(): Promise<() => Promise<string>> {
  const { collectDefaultMetrics, Registry } = await import('prom-client')
  const registry = new Registry()
  collectDefaultMetrics({ register: registry, prefix: 'gatehouse_' })
  return () => registry.metrics()
}

/**
 * What the control plane counts, as Prometheus text (contract section 2). Labels are bounded: a route's pattern and
 * never an address, a class of status, an event type; never a token, a user or a request id.
 */

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Event } from '../events/event.ts'

export interface ControlPlaneMetrics {
  /** `path` is the route's pattern, or null where there was no such route. */
  answered(answer: { method: string; path: string | null; status: number; seconds: number }): void
  /** Events taken from gateways, now and for the first time. */
  ingested(events: readonly Pick<Event, 'event_type'>[]): void
  /** How long a transaction that took events in held the ledger and this process. */
  sliced(seconds: number): void
  /** How long a change took until all lanes had acknowledged it or the wait was over. */
  propagated(seconds: number): void
  /** Prometheus text exposition. */
  text(): Promise<string>
}

const knownMethods = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'])

/** `readings` are asked for when the text is made. */
export function createControlPlaneMetrics(readings: { connectedLanes(): Promise<number> }): ControlPlaneMetrics {
  const registry = new Registry()
  const registers = [registry]
  const requests = new Counter({
    name: 'gatehouse_http_requests_total',
    help: 'Answers of the control plane by route pattern and status',
    labelNames: ['method', 'route', 'status'],
    registers,
  })
  const durations = new Histogram({
    name: 'gatehouse_http_request_seconds',
    help: "Time until an answer's headers, by route pattern",
    labelNames: ['route'],
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 2.5, 10],
    registers,
  })
  const events = new Counter({
    name: 'gatehouse_events_ingested_total',
    help: 'Events taken from gateways, by type',
    labelNames: ['type'],
    registers,
  })
  const slices = new Histogram({
    name: 'gatehouse_ingest_slice_seconds',
    help: 'Time that one transaction of events from gateways held the ledger',
    buckets: [0.001, 0.0025, 0.005, 0.0075, 0.01, 0.025, 0.05, 0.1, 0.5],
    registers,
  })
  const propagation = new Histogram({
    name: 'gatehouse_propagation_seconds',
    help: 'Time from a change to the last acknowledgement that was waited for',
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 3],
    registers,
  })
  new Gauge({
    name: 'gatehouse_connected_lanes',
    help: 'Gateway lanes that some control plane heard of in the last seconds',
    registers,
    async collect() {
      this.set(await readings.connectedLanes())
    },
  })
  let begun = false
  /** The runtime's own are made when they are first asked for: making them counts the heap, which a start would wait for. */
  const runtimeFigures = () => {
    if (begun) return
    begun = true
    collectDefaultMetrics({ register: registry, prefix: 'gatehouse_' })
  }
  return {
    answered({ method, path, status, seconds }) {
      const route = path ?? 'none'
      requests.inc({ method: knownMethods.has(method) ? method : 'other', route, status: String(status) })
      durations.observe({ route }, seconds)
    },
    ingested(taken) {
      for (const [type, some] of Map.groupBy(taken, ({ event_type }) => event_type)) events.inc({ type }, some.length)
    },
    sliced: (seconds) => slices.observe(seconds),
    propagated: (seconds) => propagation.observe(seconds),
    text() {
      runtimeFigures()
      return registry.metrics()
    },
  }
}

/**
 * What the control plane counts, as Prometheus text (handbook/reference/http.md). Labels are bounded: a route's pattern
 * and never an address, a class of status, an event type; never a token, a user or a request id.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { LogRecord } from '../events/log/record.ts'

export interface ControlPlaneMetrics {
  /** `path` is the route's pattern, or null if no route matched. */
  answered(answer: { method: string; path: string | null; status: number; seconds: number }): void
  /** Records taken from gateways, now and for the first time. Each of their events counts. */
  ingested(records: readonly Pick<LogRecord, 'event_type' | 'attempts' | 'decisions'>[]): void
  /** How long a transaction that took records in held the ledger and this process. */
  held(seconds: number): void
  /** How long a change took until all workers had acknowledged it or the wait was over. */
  propagated(seconds: number): void
  /** Prometheus text exposition. */
  text(): Promise<string>
}

const knownMethods = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'])

const answerBounds = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 2.5, 10]
const heldBounds = [0.001, 0.0025, 0.005, 0.0075, 0.01, 0.025, 0.05, 0.1, 0.5]
const propagationBounds = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 3]

/** How the state database has answered. */
export interface StateReads {
  /** Since it was last read. */
  ageSeconds: number
  /** Times at which it was not read for more than three seconds, and their sum. */
  stalls: number
  stallSeconds: number
}

/** How far one sink is behind. */
export interface SinkReading {
  name: string
  kind: string
  failing: boolean
  lagRecords: number
  lagSeconds: number
  /** Since it was made: what its receiver refused, and what retention removed before it had it. */
  refused: number
  lost: number
}

/** What alerts have found that is not over, and how their channels stand. */
export interface AlertReading {
  open: readonly { severity: string; count: number }[]
  channels: readonly { name: string; kind: string; failing: boolean; waiting: number }[]
}

/** Asked for when the text is made. */
interface ControlPlaneReadings {
  connectedWorkers(): Promise<number>
  stateReads(): StateReads
  /** What doctor found when it last looked by itself, in milliseconds since the epoch. */
  doctorReport(): Promise<{ examinedAt: number | null; findings: readonly { check: string; level: string }[] }>
  /** What verifications of the event log found. */
  verifyReport(): Promise<{ examinedAt: number | null; findings: readonly { what: string }[] }>
  sinks(): Promise<readonly SinkReading[]>
  /** What waits in the ledger for ClickHouse; nothing where the ledger keeps all events. */
  unmoved(): Promise<{ records: number; seconds: number }>
  alerts(): Promise<AlertReading>
}

export function createControlPlaneMetrics(readings: ControlPlaneReadings): ControlPlaneMetrics {
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
    buckets: answerBounds,
    registers,
  })
  const events = new Counter({
    name: 'gatehouse_events_ingested_total',
    help: 'Events taken from gateways, by type',
    labelNames: ['type'],
    registers,
  })
  const transactions = new Histogram({
    name: 'gatehouse_ingest_transaction_seconds',
    help: 'Time that one transaction of events from gateways held the ledger',
    buckets: heldBounds,
    registers,
  })
  const propagations = new Histogram({
    name: 'gatehouse_propagation_seconds',
    help: 'Time from a change to the last acknowledgement that was waited for',
    buckets: propagationBounds,
    registers,
  })
  new Gauge({
    name: 'gatehouse_connected_workers',
    help: 'Gateway workers that some control plane heard of in the last seconds',
    registers,
    async collect() {
      this.set(await readings.connectedWorkers())
    },
  })
  new Gauge({
    name: 'gatehouse_state_read_age_seconds',
    help: 'Time since the state database was last read',
    registers,
    collect() {
      this.set(readings.stateReads().ageSeconds)
    },
  })
  new Counter({
    name: 'gatehouse_state_stalls_total',
    help: 'Times at which the state database was not read for more than three seconds',
    registers,
    collect() {
      this.reset()
      this.inc(readings.stateReads().stalls)
    },
  })
  new Counter({
    name: 'gatehouse_state_stall_seconds_total',
    help: 'Time that these stalls lasted together',
    registers,
    collect() {
      this.reset()
      this.inc(readings.stateReads().stallSeconds)
    },
  })
  new Gauge({
    name: 'gatehouse_doctor_findings',
    help: 'What doctor found when it last looked by itself, by check and level',
    labelNames: ['check', 'level'],
    registers,
    async collect() {
      const { findings } = await readings.doctorReport()
      this.reset()
      for (const { check, level } of findings) this.inc({ check, level })
    },
  })
  new Gauge({
    name: 'gatehouse_doctor_examined_timestamp_seconds',
    help: 'When doctor last looked by itself',
    registers,
    async collect() {
      const { examinedAt } = await readings.doctorReport()
      this.set((examinedAt ?? 0) / 1000)
    },
  })
  new Gauge({
    name: 'gatehouse_clickhouse_lag_records',
    help: 'Records in the ledger that were to be moved to ClickHouse',
    registers,
    async collect() {
      this.set((await readings.unmoved()).records)
    },
  })
  new Gauge({
    name: 'gatehouse_clickhouse_lag_seconds',
    help: 'How long ago the oldest of them was to be moved',
    registers,
    async collect() {
      this.set((await readings.unmoved()).seconds)
    },
  })
  new Gauge({
    name: 'gatehouse_verify_findings',
    help: 'What verifications of the event log found, by kind',
    labelNames: ['what'],
    registers,
    async collect() {
      const { findings } = await readings.verifyReport()
      this.reset()
      for (const { what } of findings) this.inc({ what })
    },
  })
  new Gauge({
    name: 'gatehouse_verify_examined_timestamp_seconds',
    help: 'When events were last verified',
    registers,
    async collect() {
      const { examinedAt } = await readings.verifyReport()
      this.set((examinedAt ?? 0) / 1000)
    },
  })
  measureSinks(registry, () => readings.sinks())
  measureAlerts(registry, () => readings.alerts())
  let measuresProcess = false
  return {
    answered({ method, path, status, seconds }) {
      const route = path ?? 'none'
      requests.inc({ method: knownMethods.has(method) ? method : 'other', route, status })
      durations.observe({ route }, seconds)
    },
    ingested(taken) {
      // Finding a counter by its labels takes longer than all else here.
      const counts = new Map<string, number>()
      const count = (type: string, of: number) => counts.set(type, (counts.get(type) ?? 0) + of)
      for (const { event_type: type, attempts, decisions } of taken) {
        count(type, 1)
        if (attempts !== undefined) count('gateway.provider.attempt', attempts.length)
        if (decisions !== undefined) count('decision', decisions.length)
      }
      for (const [type, of] of counts) events.inc({ type }, of)
    },
    held: (seconds) => transactions.observe(seconds),
    propagated: (seconds) => propagations.observe(seconds),
    text() {
      // It measures the event loop all the time, so it begins when somebody asks for the first time.
      if (!measuresProcess) collectDefaultMetrics({ register: registry, prefix: 'gatehouse_' })
      measuresProcess = true
      return registry.metrics()
    },
  }
}

/** Reads once for all gauges of a page, which are read at once. */
function together<Reading>(read: () => Promise<Reading>): () => Promise<Reading> {
  let reading: Promise<Reading> | null = null
  return () => {
    reading ??= read().finally(() => {
      reading = null
    })
    return reading
  }
}

function measureAlerts(registry: Registry, readings: () => Promise<AlertReading>): void {
  const readOnce = together(readings)
  const registers = [registry]
  new Gauge({
    name: 'gatehouse_alerts_open',
    help: 'Things that alerts have found and that are not over, by severity',
    labelNames: ['severity'],
    registers,
    async collect() {
      this.reset()
      for (const { severity, count } of (await readOnce()).open) this.set({ severity }, count)
    },
  })
  const labelNames = ['channel', 'kind']
  new Gauge({
    name: 'gatehouse_alert_channel_failing',
    help: '1 while the last notice to a channel of alerts did not arrive',
    ...{ labelNames, registers },
    async collect() {
      this.reset()
      for (const { name, kind, failing } of (await readOnce()).channels) {
        this.set({ channel: name, kind }, Number(failing))
      }
    },
  })
  new Gauge({
    name: 'gatehouse_alert_notices_waiting',
    help: 'Notices that wait for a channel of alerts',
    ...{ labelNames, registers },
    async collect() {
      this.reset()
      for (const { name, kind, waiting } of (await readOnce()).channels) this.set({ channel: name, kind }, waiting)
    },
  })
}

/** One time series for each sink: there are at most a hundred, and an administrator named them. */
function measureSinks(registry: Registry, readings: () => Promise<readonly SinkReading[]>): void {
  const readOnce = together(readings)
  const gauge = (name: string, help: string, read: (sink: SinkReading) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ['sink', 'kind'],
      registers: [registry],
      async collect() {
        this.reset()
        for (const sink of await readOnce()) this.set({ sink: sink.name, kind: sink.kind }, read(sink))
      },
    })
  gauge('gatehouse_sink_lag_records', 'Records that a sink has not got yet', ({ lagRecords }) => lagRecords)
  gauge('gatehouse_sink_lag_seconds', 'How long the oldest of them waits', ({ lagSeconds }) => lagSeconds)
  gauge('gatehouse_sink_failing', '1 while the last try of a sink failed', ({ failing }) => Number(failing))
  gauge('gatehouse_sink_refused', 'Messages that the receiver of a sink refused', ({ refused }) => refused)
  gauge('gatehouse_sink_lost_records', 'Records that retention removed before a sink had them', ({ lost }) => lost)
}

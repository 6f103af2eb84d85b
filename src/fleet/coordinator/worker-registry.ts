/**
 * The workers that this control plane knows: who owns each, what it has acknowledged, when it last sent a heartbeat.
 * All control planes share the ledger's `workers` rows: a worker's stream, its heartbeats and its batches may each
 * reach another one. Heartbeats and acknowledgements are written within a second, and a row that another stream has
 * taken over is noticed then. Acknowledgements are broadcast to the other control planes together, after at most 20
 * ms; they are already durable on their workers. Rows are written at once if a peer did not receive the broadcast, and
 * for a new worker.
 *
 * Longer than most: the known workers, and the one write and broadcast about them, are one state.
 *
 * A worker counts from when its stream was taken over as if it had sent a heartbeat then. That is written before it is
 * sent the head, so every later revocation waits for it, however late its first heartbeat is written.
 *
 * Rows use the ledger's clock and memory the monotonic clock. Only ages are compared.
 */
import { Failure } from '../../failure.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log/log.ts'
import { type Database, databaseTime } from '../../store/open.ts'
import { type Acknowledgement, maxAcknowledged } from '../protocol/peer-signal.ts'
import type { StreamMessage, TargetHealth } from '../protocol/wire.ts'

const flushEveryMs = 1000
/** How long an acknowledgement may wait for those of other workers. */
const broadcastDelayMs = 20
/** How far the rows may be behind heartbeats that this control plane has answered as fresh. */
const maxLagMs = 2000
/** The longest possible `max_staleness`. */
const forgetAfterMs = 86_400_000

/** The open stream of a worker. */
export interface WorkerStream {
  send(message: StreamMessage): void
  end(): void
}

export interface Worker {
  worker: string
  gatewayId: string
  instanceId: string
  workerNumber: number
  tokenId: string
  streamId: string
  /** The gateway's process; empty if not known here. */
  process: string
  /** Null if another control plane, or currently nobody, has it. */
  stream: WorkerStream | null
  acknowledgedVersion: number
  /** When it last sent a heartbeat here, by the monotonic clock; null if it has not. */
  lastHeartbeatAt: number | null
  /** How long it serves without a fresh answer; null if it has not said so here. */
  staleAfterMs: number | null
  /** What it last said of its targets here, and when by the clock; null if it has not. */
  targets?: { readonly at: number; readonly health: readonly TargetHealth[] }
}

/** How a stream came to own its worker. */
export interface Takeover {
  /** In the ledger's time. */
  takenAt: number
  /** The ledger has no stream as recent as the one by which the same process owned the worker before. */
  forgotten: boolean
}

/** A worker's row in the ledger. */
export interface WorkerRow {
  worker: string
  gateway_id: string
  instance_id: string
  stream_id: string
  acknowledged_version: number
  stale_after_ms: number
  /** Milliseconds since its last written heartbeat, or since its stream took it over. */
  age: number
}

/** A worker's status, from memory and the ledger. */
export interface WorkerStatus {
  worker: string
  gatewayId: string
  instanceId: string
  streamId: string
  acknowledgedVersion: number
  /** How long it serves without a fresh answer, at most. */
  staleAfterMs: number
  /** Milliseconds since its last known heartbeat. */
  age: number
  /** How much later its last heartbeat may be if it is not written yet: elsewhere, or here before a restart. */
  lag: number
  /** Whether its stream is here, so that its acknowledgements arrive at once. */
  here: boolean
}

interface WorkerHolder {
  stream_id: string
  connected_at: number
  holder: string
}

const holderOf = 'select stream_id, connected_at, holder from workers where worker = ?'

export class WorkerRegistry {
  readonly #ledger: Database
  readonly #clock: Clock
  readonly #log: Log
  readonly #workers = new Map<string, Worker>()
  readonly #unwritten = new Set<Worker>()
  readonly #waiters = new Set<() => void>()
  readonly #timer: Timer
  /** Whether there may be other control planes. */
  readonly #shared: boolean
  /** When the first unwritten heartbeat arrived. */
  #unwrittenSince: number | null = null
  /** The error of the last write. */
  writeError: unknown = null
  #closed = false
  /** The order in which workers were requested or adopted here. */
  readonly #arrived = new WeakMap<Worker, number>()
  #arrivals = 0
  /** The newest acknowledged version, and how many workers have acknowledged it. */
  #newest = { version: 0, workers: 0 }
  #broadcastTimer: Timer | null = null
  readonly #notBroadcast = new Set<Worker>()
  #flushing = false
  #flushAgain = false
  /** Acknowledgements of workers on other control planes, as those have broadcast them. */
  readonly #peerAcknowledgements = new Map<string, Acknowledgement>()
  /** Broadcasts acknowledgements to the other control planes. Resolves to whether each received them. */
  broadcastAcknowledgements: (workers: Acknowledgement[]) => Promise<boolean> = async () => true

  constructor({ ledger, clock, log, shared }: { ledger: Database; clock: Clock; log: Log; shared: boolean }) {
    this.#ledger = ledger
    this.#clock = clock
    this.#log = log
    this.#shared = shared
    this.#timer = setInterval(() => {
      this.#forget()
      this.#flush()
    }, flushEveryMs)
    this.#timer.unref()
  }

  all(): Worker[] {
    return [...this.#workers.values()]
  }

  get(worker: string): Worker | null {
    return this.#workers.get(worker) ?? null
  }

  /**
   * Gives the worker to a new stream and ends the former one. Resolves when the row is committed. Throws
   * `dependency_unavailable` if this control plane is ending, since the new stream would keep it from ending, and if
   * another stream was opened meanwhile or nobody waits for this one any more. Otherwise a write that a hanging
   * primary commits late would fence the worker's next stream.
   *
   * `since` is when the same process last owned the worker, by the ledger's time. Throws `worker_fenced` if another
   * process has taken it over after that. An earlier owner is gone, or will be informed of this.
   */
  async takeOver(worker: Worker, isWanted: () => boolean = () => true, since: number | null = null): Promise<Takeover> {
    if (this.#closed) throw new Failure('dependency_unavailable', { message: 'This control plane is shutting down' })
    this.#arrived.set(worker, ++this.#arrivals)
    const before = await this.row(worker.worker)
    if (!isWanted()) throw overtaken()
    const later = before !== null && since !== null && before.connected_at > since
    if (later && before.holder !== worker.process) throw new Failure('worker_fenced')
    const [row] = await this.#ledger.writeAndRead<WorkerHolder>([
      {
        sql: `insert into workers (worker, gateway_id, instance_id, worker_number, stream_id, gateway_version,
                acknowledged_version, last_heartbeat_at, connected_at, holder, stale_after_ms)
              values (?1, ?2, ?3, ?4, ?5, coalesce(${newestVersion}, ''), 0, 0, ${databaseTime}, ?7, ?8)
              on conflict (worker) do update set stream_id = excluded.stream_id, connected_at = excluded.connected_at,
                holder = excluded.holder, stale_after_ms = excluded.stale_after_ms,
                acknowledged_version = 0, left_at = null, gateway_version = coalesce(${newestVersion}, gateway_version)
                where workers.stream_id is ?6`,
        args: [
          ...[worker.worker, worker.gatewayId, worker.instanceId, worker.workerNumber, worker.streamId],
          ...[before?.stream_id ?? null, worker.process, worker.staleAfterMs],
        ],
      },
      { sql: holderOf, args: [worker.worker] },
    ])
    if (row?.stream_id !== worker.streamId || !isWanted()) throw overtaken()
    const former = this.#workers.get(worker.worker)
    if (former !== undefined && this.#arrivedAt(former) > this.#arrivedAt(worker)) throw overtaken()
    this.#workers.set(worker.worker, worker)
    if (former !== undefined) this.#end(former)
    return { takenAt: row.connected_at, forgotten: since !== null && (before?.connected_at ?? 0) < since }
  }

  #arrivedAt(worker: Worker): number {
    return this.#arrived.get(worker) ?? 0
  }

  /**
   * Whether heartbeats are written recently enough to answer one as fresh: other control planes compute from the rows
   * until when a worker may serve.
   */
  get areHeartbeatsWritten(): boolean {
    return !this.#shared || this.unwrittenMs < maxLagMs
  }

  /** Milliseconds since the first unwritten heartbeat; 0 if all are written. */
  get unwrittenMs(): number {
    return this.#unwrittenSince === null ? 0 : this.#clock.monotonic() - this.#unwrittenSince
  }

  /** Adds a worker whose stream another control plane has, or this one had before a restart. */
  adopt(worker: Worker): Worker {
    this.#arrived.set(worker, ++this.#arrivals)
    this.#workers.set(worker.worker, worker)
    return worker
  }

  /** Another stream has taken the worker over at another control plane: ends the former one. */
  async takenElsewhere(name: string, streamId: string): Promise<void> {
    const worker = this.#workers.get(name)
    if (worker === undefined || worker.streamId === streamId) return
    // The signal may be older than our own takeover.
    const row = await this.row(name)
    if (row?.stream_id === worker.streamId || this.#workers.get(name) !== worker) return
    this.#workers.delete(name)
    this.#end(worker)
  }

  /** The worker holds nothing any more and will not serve again with this stream. */
  async deregister(worker: Worker): Promise<void> {
    await this.#ledger.write([
      {
        sql: `update workers set left_at = ${databaseTime} where worker = ? and stream_id = ?`,
        args: [worker.worker, worker.streamId],
      },
      { sql: 'delete from runtime_sessions where instance_id = ?', args: [worker.instanceId] },
    ])
    this.#unwritten.delete(worker)
    if (this.#workers.get(worker.worker) === worker) this.#workers.delete(worker.worker)
    worker.stream?.end()
    this.wake()
  }

  /** A heartbeat of the worker's owner, with its staleness limit. An acknowledgement counts at once. */
  heartbeat(worker: Worker, acknowledgedVersion: number, staleAfterMs: number | null = null): void {
    worker.staleAfterMs = staleAfterMs ?? worker.staleAfterMs
    worker.lastHeartbeatAt = this.#clock.monotonic()
    this.#unwritten.add(worker)
    this.#unwrittenSince ??= worker.lastHeartbeatAt
    if (acknowledgedVersion <= worker.acknowledgedVersion) return
    const isNew = worker.acknowledgedVersion === 0
    worker.acknowledgedVersion = acknowledgedVersion
    // After its first acknowledgement it may serve, so all control planes must know of it.
    if (isNew) this.#flush()
    this.wake()
    this.#notBroadcast.add(worker)
    this.#broadcastSoon(acknowledgedVersion)
  }

  /** All workers here acknowledge a change at about the same time, so one broadcast after the last is enough. */
  #broadcastSoon(version: number): void {
    if (version > this.#newest.version) this.#newest = { version, workers: 0 }
    if (version === this.#newest.version) this.#newest.workers += 1
    if (this.#newest.workers >= this.#workers.size) this.#broadcast()
    else this.#broadcastTimer ??= setTimeout(() => this.#broadcast(), broadcastDelayMs)
  }

  #broadcast(): void {
    if (this.#broadcastTimer !== null) clearTimeout(this.#broadcastTimer)
    this.#broadcastTimer = null
    const workers = [...this.#notBroadcast].slice(0, maxAcknowledged)
    this.#notBroadcast.clear()
    const acknowledgements = workers.map(({ worker, streamId, acknowledgedVersion }) => ({
      worker,
      stream_id: streamId,
      version: acknowledgedVersion,
    }))
    void this.broadcastAcknowledgements(acknowledgements).then((heard) => {
      if (!heard && !this.#closed) this.#flush()
    })
  }

  /** The acknowledged versions belong to a lost history: nothing is acknowledged, and every worker reconnects. */
  async restart(): Promise<void> {
    this.#peerAcknowledgements.clear()
    this.#newest = { version: 0, workers: 0 }
    for (const worker of this.#workers.values()) {
      worker.acknowledgedVersion = 0
      worker.stream?.end()
    }
    await this.#ledger.write([{ sql: 'update workers set acknowledged_version = 0', args: [] }])
  }

  /** Resolves with the next acknowledgement, or after this time. */
  async nextAcknowledgement(milliseconds: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiters.add(resolve)
    const timer = setTimeout(resolve, milliseconds)
    await promise
    clearTimeout(timer)
    this.#waiters.delete(resolve)
  }

  /** Wakes everything that waits for acknowledgements. */
  wake(): void {
    for (const resolve of this.#waiters) resolve()
  }

  /**
   * The workers that may still serve by their last heartbeat and have not deregistered, on any control plane.
   * `milliseconds` is the staleness limit of workers that have not reported theirs.
   */
  async statuses(milliseconds: number): Promise<WorkerStatus[]> {
    const rows = await this.#ledger.read<WorkerRow>(
      `select worker, gateway_id, instance_id, stream_id, acknowledged_version,
        coalesce(stale_after_ms, ?1) as stale_after_ms, ${databaseTime} - max(last_heartbeat_at, connected_at) as age
        from workers where left_at is null
          and max(last_heartbeat_at, connected_at) > ${databaseTime} - coalesce(stale_after_ms, ?1) - ?2`,
      [milliseconds, maxLagMs + flushEveryMs],
    )
    return rows.map((row) => this.#merge(row)).filter(({ age, lag, staleAfterMs }) => age - lag < staleAfterMs)
  }

  /** Applies acknowledgements from another control plane. Older ones may arrive later. */
  applyPeerAcknowledgements(workers: readonly Acknowledgement[]): void {
    if (this.#peerAcknowledgements.size > maxAcknowledged) this.#peerAcknowledgements.clear()
    for (const each of workers) {
      const known = this.#peerAcknowledgements.get(each.worker)
      if (known?.stream_id !== each.stream_id || known.version < each.version)
        this.#peerAcknowledgements.set(each.worker, each)
    }
    this.wake()
  }

  /** The status with later acknowledgements of its worker. */
  refreshed(status: WorkerStatus): WorkerStatus {
    const { worker, streamId, acknowledgedVersion } = status
    return { ...status, acknowledgedVersion: Math.max(acknowledgedVersion, this.#acknowledged(worker, streamId)) }
  }

  /** Whether a worker that was connected here has left since. */
  hasLeft({ worker, here }: WorkerStatus): boolean {
    return here && !this.#workers.has(worker)
  }

  async row(worker: string): Promise<WorkerHolder | null> {
    const [row] = await this.#ledger.read<WorkerHolder>(holderOf, [worker])
    return row ?? null
  }

  /** Closes the streams, so that their workers go to another control plane, and writes what is unwritten. */
  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#timer)
    if (this.#broadcastTimer !== null) clearTimeout(this.#broadcastTimer)
    for (const { stream } of this.#workers.values()) stream?.end()
    await this.#write()
  }

  #merge(row: WorkerRow): WorkerStatus {
    const known = this.#workers.get(row.worker)
    const held = known?.streamId === row.stream_id ? known : null
    const ageHere =
      typeof held?.lastHeartbeatAt !== 'number'
        ? Number.POSITIVE_INFINITY
        : this.#clock.monotonic() - held.lastHeartbeatAt
    return {
      worker: row.worker,
      gatewayId: row.gateway_id,
      instanceId: row.instance_id,
      streamId: row.stream_id,
      acknowledgedVersion: Math.max(row.acknowledged_version, this.#acknowledged(row.worker, row.stream_id)),
      staleAfterMs: row.stale_after_ms,
      age: Math.min(row.age, ageHere),
      lag: this.#shared || ageHere === Number.POSITIVE_INFINITY ? maxLagMs + flushEveryMs : 0,
      here: held !== null && held.stream !== null,
    }
  }

  /** What the owner of this stream has acknowledged, here or by a broadcast. */
  #acknowledged(worker: string, streamId: string): number {
    const [here, peer] = [this.#workers.get(worker), this.#peerAcknowledgements.get(worker)]
    return Math.max(
      here?.streamId === streamId ? here.acknowledgedVersion : 0,
      peer?.stream_id === streamId ? peer.version : 0,
    )
  }

  #end(worker: Worker): void {
    this.#unwritten.delete(worker)
    worker.stream?.send({ kind: 'fenced' })
    worker.stream?.end()
  }

  /** Removes instances that have been silent for longer than any may serve. */
  #forget(): void {
    const before = this.#clock.monotonic() - forgetAfterMs
    for (const [name, { stream, lastHeartbeatAt }] of this.#workers) {
      if (stream === null && (lastHeartbeatAt ?? before) <= before) this.#workers.delete(name)
    }
  }

  /** One write at a time: what comes meanwhile is written together with the next. */
  #flush(): void {
    this.#flushAgain = true
    if (this.#flushing) return
    this.#flushing = true
    void this.#flushWhileNeeded()
  }

  async #flushWhileNeeded(): Promise<void> {
    while (this.#flushAgain) {
      this.#flushAgain = false
      try {
        await this.#write()
        this.writeError = null
      } catch (error) {
        this.writeError = error
        // The next heartbeats bring the rows up to date.
        this.#log.warn({ error: String(error) }, 'The heartbeats of workers could not be written')
      }
    }
    this.#flushing = false
  }

  async #write(): Promise<void> {
    const workers = [...this.#unwritten]
    if (workers.length === 0) return
    const unwrittenSince = this.#unwrittenSince
    this.#unwritten.clear()
    const now = this.#clock.monotonic()
    const rows = workers.map(({ worker, streamId, acknowledgedVersion, lastHeartbeatAt, staleAfterMs }) => ({
      worker,
      stream_id: streamId,
      acknowledged: acknowledgedVersion,
      stale: staleAfterMs,
      age: Math.round(now - (lastHeartbeatAt ?? now)),
    }))
    const written = await this.#ledger.read<{ worker: string }>(
      `update workers set acknowledged_version = max(acknowledged_version, value ->> 'acknowledged'),
          stale_after_ms = coalesce(value ->> 'stale', stale_after_ms),
          last_heartbeat_at = max(min(last_heartbeat_at, ${databaseTime}), ${databaseTime} - (value ->> 'age'))
        from json_each(?) where workers.worker = value ->> 'worker' and workers.stream_id = value ->> 'stream_id'
        returning worker`,
      [JSON.stringify(rows)],
    )
    if (this.#unwrittenSince === unwrittenSince) this.#unwrittenSince = this.#unwritten.size === 0 ? null : now
    const held = new Set(written.map(({ worker }) => worker))
    for (const worker of workers) {
      if (held.has(worker.worker) || this.#workers.get(worker.worker) !== worker) continue
      this.#workers.delete(worker.worker)
      this.#end(worker)
    }
  }
}

const newestVersion = `(select nullif(gateway_version, '') from runtime_sessions where instance_id = ?3
  order by expires_at desc limit 1)`

const overtaken = (): Failure =>
  new Failure('dependency_unavailable', { message: 'Another stream of this worker was opened in the meantime' })

/**
 * The lanes connected to this control plane: who holds each, what it has acknowledged, when it last beat. Memory is
 * what is asked; the ledger's `lanes` rows follow within a second, for a restart and for other control planes.
 */
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Database } from '../store/open.ts'
import type { StreamMessage } from './wire.ts'

export const flushEveryMs = 1000
/** The longest `max_staleness` there is. */
const forgetAfterMs = 86_400_000

/** The open stream of a lane. */
export interface LaneStream {
  send(message: StreamMessage): void
  end(): void
}

export interface Lane {
  lane: string
  gatewayId: string
  instanceId: string
  worker: number
  tokenId: string
  streamId: string
  stream: LaneStream | null
  acknowledgedVersion: number
  lastBeatAt: number
}

/** A lane as the ledger has it. */
export interface LaneRow {
  lane: string
  gateway_id: string
  instance_id: string
  worker: number
  stream_id: string
  acknowledged_version: number
  last_beat_at: number
}

export class LaneRegistry {
  readonly #ledger: Database
  readonly #clock: Clock
  readonly #log: Log
  readonly #lanes = new Map<string, Lane>()
  readonly #unwritten = new Set<Lane>()
  readonly #waiting = new Set<() => void>()
  readonly #timer: Timer

  constructor(ledger: Database, clock: Clock, log: Log) {
    this.#ledger = ledger
    this.#clock = clock
    this.#log = log
    this.#timer = setInterval(() => {
      this.#forget()
      this.#flush()
    }, flushEveryMs)
    this.#timer.unref()
  }

  all(): Lane[] {
    return [...this.#lanes.values()]
  }

  get(lane: string): Lane | null {
    return this.#lanes.get(lane) ?? null
  }

  /** Gives the lane to a new stream: the former holder's is told and ended. Resolves when the row is committed. */
  async take(lane: Lane, gatewayVersion: string | null): Promise<void> {
    const former = this.#lanes.get(lane.lane)
    this.#lanes.set(lane.lane, lane)
    if (former !== undefined) {
      this.#unwritten.delete(former)
      former.stream?.send({ kind: 'fenced' })
      former.stream?.end()
    }
    await this.#ledger.write([
      {
        sql: `insert into lanes (lane, gateway_id, instance_id, worker, stream_id, gateway_version,
                acknowledged_version, last_beat_at, connected_at)
              values (?1, ?2, ?3, ?4, ?5, coalesce(?6, ''), 0, ?7, ?8)
              on conflict (lane) do update set stream_id = excluded.stream_id, connected_at = excluded.connected_at,
                acknowledged_version = 0, gateway_version = coalesce(?6, gateway_version)`,
        args: [
          lane.lane,
          lane.gatewayId,
          lane.instanceId,
          lane.worker,
          lane.streamId,
          gatewayVersion,
          lane.lastBeatAt,
          this.#clock.now(),
        ],
      },
    ])
  }

  /** Adopts a lane that another process of this control plane gave its stream to, before a restart. */
  adopt(lane: Lane): Lane {
    this.#lanes.set(lane.lane, lane)
    return lane
  }

  /** A beat of the lane's holder. An acknowledgement counts at once. */
  beat(lane: Lane, acknowledgedVersion: number): void {
    lane.lastBeatAt = this.#clock.now()
    this.#unwritten.add(lane)
    if (acknowledgedVersion <= lane.acknowledgedVersion) return
    lane.acknowledgedVersion = acknowledgedVersion
    for (const wake of this.#waiting) wake()
    this.#flush()
  }

  /** Waits until `done`, looked at after each acknowledgement, or for so long. */
  async until(done: () => boolean, milliseconds: number): Promise<void> {
    if (done()) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const wake = () => {
      if (done()) resolve()
    }
    this.#waiting.add(wake)
    const timer = setTimeout(resolve, milliseconds)
    await promise
    clearTimeout(timer)
    this.#waiting.delete(wake)
  }

  /** Lanes by the ledger that beat after an instant. */
  rows(since: number): Promise<LaneRow[]> {
    return this.#ledger.read<LaneRow>('select * from lanes where last_beat_at > ?', [since])
  }

  async row(lane: string): Promise<LaneRow | null> {
    const [row] = await this.#ledger.read<LaneRow>('select * from lanes where lane = ?', [lane])
    return row ?? null
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    for (const { stream } of this.#lanes.values()) stream?.end()
    await this.#write()
  }

  /** Instances come and go; one that has been silent for longer than any may serve is not looked at for ever. */
  #forget(): void {
    const before = this.#clock.now() - forgetAfterMs
    for (const [name, { stream, lastBeatAt }] of this.#lanes) {
      if (stream === null && lastBeatAt < before) this.#lanes.delete(name)
    }
  }

  #flush(): void {
    this.#write().catch((error: unknown) => {
      // What counts is in memory; the lanes' next beats bring the rows up to date.
      this.#log.warn({ error: String(error) }, 'The beats of lanes could not be written')
    })
  }

  async #write(): Promise<void> {
    if (this.#unwritten.size === 0) return
    const rows = [...this.#unwritten].map(({ lane, streamId, acknowledgedVersion, lastBeatAt }) => ({
      lane,
      stream_id: streamId,
      acknowledged: acknowledgedVersion,
      beat: lastBeatAt,
    }))
    this.#unwritten.clear()
    await this.#ledger.write([
      {
        sql: `update lanes set acknowledged_version = value ->> 'acknowledged', last_beat_at = value ->> 'beat'
              from json_each(?) where lanes.lane = value ->> 'lane' and lanes.stream_id = value ->> 'stream_id'`,
        args: [JSON.stringify(rows)],
      },
    ])
  }
}

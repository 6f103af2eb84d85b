/** A ledger with signed chains of workers and the control plane, for tests of the proof. */
import { join } from 'node:path'
import { newId } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log/log.ts'
import { type TemporaryStore, temporaryStore } from '../../store/testing/store.ts'
import { createRecorder } from '../change.ts'
import { type Event, noAttribution } from '../event.ts'
import { chainHead, ingestEvents } from '../ingest/ingest.ts'
import { ChainWalk } from '../log/chain.ts'
import { mergeOnce } from '../log/merge-segments.ts'
import { loadSigningKey, publishKey, type Signed, type SigningKey } from '../proof/checkpoint-key.ts'
import { type CheckpointOptions, signCheckpoint } from '../proof/checkpoint-writer.ts'
import { removeOldEvents } from '../retention/retention.ts'
import { pendingRollups } from '../rollups/pending-rollups.ts'
import type { Finding } from '../verify/finding.ts'
import { type VerifyLine, verifyEvents } from '../verify/verify.ts'
import { testEvent } from './ledger.ts'
import { recordedEvents } from './recorded.ts'
import { lineOf } from './worker-chain.ts'

const minute = 60_000
export const retentionDays = 90

export class TestProof {
  readonly store: TemporaryStore
  readonly key: SigningKey
  now = Date.parse('2026-01-01T00:00:00Z')
  readonly clock = { now: () => this.now, monotonic: () => this.now }

  private constructor(store: TemporaryStore) {
    this.store = store
    this.key = loadSigningKey(join(store.directory, 'checkpoint-key'))
  }

  static async start(): Promise<TestProof> {
    const proof = new TestProof(await temporaryStore())
    await proof.store.ledger.write([publishKey(proof.key, proof.now)])
    return proof
  }

  readonly worker = (gateway: number): string =>
    `0190000${gateway}-0000-7000-8000-000000000001/01900000-0000-7000-8000-000000000002/0`

  gatewayEvent(gateway: number, change: Partial<Event> = {}): Event {
    const [gatewayId = ''] = this.worker(gateway).split('/')
    const attribution = { ...noAttribution, gateway_id: gatewayId, team_id: 'team', token_id: 'token' }
    return testEvent({ event_attribution: attribution, timestamp: new Date(this.now).toISOString(), ...change })
  }

  /** Ships bodies as the worker of a gateway would; a body may be anything. */
  async ship(gateway: number, bodies: readonly string[]): Promise<void> {
    const chain = this.worker(gateway)
    const head = await chainHead(this.store.ledger, chain)
    const walk = new ChainWalk(head.digest)
    for (const [index, body] of bodies.entries()) walk.step(head.seq + 1 + index, body)
    await ingestEvents(this.store.ledger, {
      chain,
      gatewayId: chain.split('/')[0] ?? '',
      ...{ first: head.seq + 1, lines: bodies.map(lineOf), digest: walk.digest },
      receivedAt: this.now,
      newId,
      log: silentLog,
      bookingStatements: () => [],
      onIngested: () => undefined,
    })
  }

  async shipEvents(gateway: number, count: number): Promise<void> {
    await this.ship(
      gateway,
      Array.from({ length: count }, () => JSON.stringify(this.gatewayEvent(gateway))),
    )
  }

  /** Events of the control plane itself. */
  async record(count: number): Promise<void> {
    const { state, ledger } = this.store
    const recorder = createRecorder({ state, ledger, announce: () => undefined, clock: this.clock, log: silentLog })
    await recorder.append(Array.from({ length: count }, () => testEvent({ event_type: 'token.created' })))
  }

  /** Merges segments: `full` records make a block, `fanIn` neighbours a segment. Gives how many merges there were. */
  async merge(full: number, fanIn: number): Promise<number> {
    let merges = 0
    while (await mergeOnce(this.store.ledger, { full, fanIn })) merges += 1
    return merges
  }

  /** A round of retention. */
  async retain(change: Partial<Parameters<typeof removeOldEvents>[0]> = {}): ReturnType<typeof removeOldEvents> {
    const { key, clock } = this
    const settings = { event_retention_days: retentionDays, sink_hold_days: 7 }
    const heldFrom = async () => null
    return await removeOldEvents({
      ledger: this.store.ledger,
      key,
      clock,
      log: silentLog,
      settings,
      heldFrom,
      ...change,
    })
  }

  /**
   * Positions 1–5: worker 1, of which 5 is quarantined; 6–8: worker 2; 9–11: the control plane; signed; 12–16: worker 1;
   * signed.
   */
  async recordTwoCheckpoints(): Promise<void> {
    await this.shipEvents(1, 4)
    await this.ship(1, ['{"not":"an event"}'])
    await this.shipEvents(2, 3)
    await this.record(3)
    await this.sign()
    await this.shipEvents(1, 5)
    await this.sign()
  }

  /** A minute later. */
  async sign(key = this.key): Promise<boolean> {
    this.now += minute
    return await signCheckpoint(this.signing(key))
  }

  signing(key = this.key): CheckpointOptions {
    const { state, ledger } = this.store
    return {
      ...{ state, ledger, key, clock: this.clock, log: silentLog },
      announce: () => undefined,
      settings: { event_retention_days: retentionDays },
    }
  }

  async verify(
    options: {
      since?: number
      pinned?: readonly string[]
      witnesses?: readonly Signed[]
      monotonic?: () => number
      now?: number
    } = {},
  ): Promise<VerifyLine[]> {
    const { state, ledger } = this.store
    const { since = null, pinned = [], witnesses = [], monotonic = this.clock.monotonic } = options
    // By then any control plane has stored the last checkpoint in both databases.
    const now = options.now ?? this.now + 20_000
    const { signal } = new AbortController()
    return await Array.fromAsync(
      verifyEvents({
        ...{ state, ledger, since, pinned, witnesses, now, signal, monotonic },
        retention: retentionDays * 86_400_000,
      }),
    )
  }

  /** The findings, each as `what chain from–to column`, the chain by its number. */
  async findings(options?: Parameters<TestProof['verify']>[0]): Promise<string[]> {
    const found = (await this.verify(options)).filter((line): line is Finding => line.kind === 'finding')
    return found.map(({ what, chain, from, to, column }) =>
      [what, chain?.slice(0, 8), from === null ? null : `${from}–${to}`, column]
        .filter((part) => part != null)
        .join(' '),
    )
  }

  /** The sums that charts show are made anew of the events that are left. */
  async forgetSums(): Promise<void> {
    const { ledger } = this.store
    await this.run('delete from event_rollups')
    await this.run('delete from pending_event_rollups')
    const outcomes = await recordedEvents(ledger, 'gateway.request.outcome')
    for (const outcome of outcomes) await ledger.write(pendingRollups([outcome], Date.parse(outcome.timestamp)))
  }

  async run(sql: string, ...args: (string | number | null)[]): Promise<void> {
    await this.store.ledger.write([{ sql, args }])
  }
}

/**
 * Keeps one worker connected to its control plane (fleet/README.md): bootstrap and renewal of the session, the change
 * stream, the heartbeat, and shipping. Everything is retried with backoff until `stop`.
 *
 * A change: its tokens are refused in memory in the same tick, the revocation is committed to the outbox, then a
 * heartbeat acknowledges it, and only then the state is read. A version is acknowledged if it follows the last
 * acknowledged one, or when the state itself has reached it: that covers what was missed while the stream was down.
 *
 * Freshness comes from the worker's own heartbeats only. If the control plane had just read the primary, then as of the
 * moment the heartbeat was sent the worker has all revocations up to that head, once its state has reached it.
 *
 * No revocation waits for a deregistered worker. So the worker first deletes its stored freshness, and its next start
 * serves only after a handshake. If the control plane is unreachable it does not deregister: it counts as unreachable,
 * and may serve again from its stored freshness.
 *
 * Longer than most: what one connection knows is one state. Independent parts are in files of their own.
 */
import { asFailure, Failure } from '../../failure.ts'
import type { Log } from '../../lib/log/log.ts'
import type { OfferReport } from '../../mcp/offers/offer-report.ts'
import type { PersonTokenReply, PersonTokenRequest } from '../../mcp/personal/person-token.ts'
import type { Head } from '../../store/propagation.ts'
import type { BatchesReply, BatchUse, ObjectsQuery, ObjectsReply } from '../../usage/batches/batch-protocol.ts'
import type { LeaseReply, LeaseRequest } from '../../usage/lease/lease.ts'
import { mergeCounts, type TransactionCount } from '../../usage/lease/ledger-epoch.ts'
import type { SlotBalance, SlotsReply } from '../../usage/rate/rate-protocol.ts'
import type { RevocationEntry } from '../coordinator/lost-revocations.ts'
import type { Outbox } from '../outbox/outbox.ts'
import type { StatePosition } from '../outbox/record.ts'
import { backoff } from '../protocol/backoff.ts'
import { readEventStream } from '../protocol/event-stream.ts'
import {
  type AnnouncedHead,
  type ChainHead,
  revocationBatchLimit,
  type StreamMessage,
  streamMessageSchema,
  streamSilenceMs,
  type TargetHealth,
} from '../protocol/wire.ts'
import type { FileStateView } from '../state/state-view.ts'
import { type Freshness, instant, reaches } from './freshness.ts'
import { RuntimeSession, type RuntimeSessionOptions } from './runtime-session.ts'
import { Shipper } from './shipper.ts'

/**
 * Pauses between reads of a state that lags behind, growing from the first to the second. Used without change notices.
 */
const minPollMs = 5
const maxPollMs = 500
/**
 * How long reading the state may be deferred, at most; at least half of it. Changes that come meanwhile are read
 * together, and hosts do not all ask the primary at once. It must be a small share of `max_staleness`, since answers
 * do not count while the state lags behind.
 */
const maxDeferMs = 1500
const deferShare = 0.1
/** How recently the primary must have been seen for a deregistration, which needs a write there. */
const primaryRecentMs = 3000
/**
 * A stream with bytes is reopened if it has not brought a head for this long that a heartbeat knows, or no handshake.
 */
const stalledMs = 5000
const handshakeTimeoutMs = streamSilenceMs
/** After this time an acknowledgement no longer waits for the answer to the previous one. */
const nextHeartbeatMs = 1000
/** How often a heartbeat says what was measured of targets. */
const targetsEveryMs = 3000

export interface ControlConnectionOptions extends RuntimeSessionOptions {
  worker: number
  /** Identifies this process to the control plane. */
  process: string
  outbox: Outbox
  view: FileStateView
  freshness: Freshness
  log: Log
  random: () => number
  heartbeatEveryMs: number
  lingerMs: number
  onRevoked(hashes: readonly string[]): void
  onEndRequests(hashes: readonly string[]): void
  /** The control plane's time from an answer, in milliseconds since the epoch, and when it was requested. */
  onTime(now: number, askedAt: number): void
  onFresh(): void
  /** What the worker measured of its targets. */
  targets(): readonly TargetHealth[]
  /** Deletes stored freshness durably before a deregistration. Throws if that fails. */
  onDeregistering(): void
  /** How long the worker serves without a fresh answer. */
  staleAfterMs(): number
  /** The control plane's `max_staleness`. A higher value counts only if it was written to the worker's row before. */
  onStaleness(seconds: number, written: boolean): void
  /** The primary is ahead of the state that is read here. */
  onReplicaBehind(): void
  /** Whether `stateRead` is called when the state has advanced. */
  notifiesStateRead: boolean
  /**
   * The primary was restored or replaced and has another history than the state that is read here. Resolves when both
   * are the same again.
   */
  onRestored(head: Head): Promise<void>
  /** Another worker needs slots of a limit. */
  onSlotsRecalled(account: string, want: number, at: number): void
  /** The handshake has arrived: the worker can register its balances. */
  onConnected(): void
  /** Null if the ledger's chain agrees with this worker's, or the last number at which both agree. */
  forkedAfter(announced: AnnouncedHead): number | null
  /** The last event that the control plane was known to have, kept over restarts. */
  agreedEvent(): number
  /** The control plane's chain agrees with this worker's up to here. */
  onAgreed(head: ChainHead): void
  /** The control plane recalls shares of these accounts. */
  onRecalled(accounts: readonly string[]): void
  /** Another process has taken the worker over: this one must end. */
  onFenced(): void
  /** The ledger has events that this worker has lost. Its shares of limits are declared lost before it ends. */
  onForked(): Promise<void>
  /** This instance's chain cannot continue: another instance must start, with the events after number `after`. */
  onRetired(failure: Failure, after: number): void
}

type Change = Extract<StreamMessage, { kind: 'change' }>
type Handshake = Extract<StreamMessage, { kind: 'handshake' }>

export class ControlConnection {
  readonly #options: ControlConnectionOptions
  readonly #shipper: Shipper
  readonly #stopping = new AbortController()
  readonly #session: RuntimeSession
  /** The providers and MCP servers without a key, as of the last bootstrap for keys. */
  #requestedKeys = ''
  #streamId: string | null = null
  /** When this process last took the worker over, in the ledger's time. */
  #takenAt: number | null = null
  /** The ledger's transaction counts from the last heartbeat, and from grants since. */
  #ledgerEpoch: readonly TransactionCount[] = []
  /** When the last reply with grants arrived, by the monotonic clock. */
  #grantsAt = Number.NEGATIVE_INFINITY
  /** When the stream was requested, by the monotonic clock. */
  #streamAskedAt = 0
  #stream: AbortController | null = null
  /** What is acknowledged, or will be once the pending records are committed. */
  #pendingAcknowledgement: StatePosition | null
  /** The head of that version. Its nonce shows the control plane that the version is its own. */
  #pendingAcknowledgementHead: Head | null = null
  /** The newest head that the state must reach, and the task that reads up to it. */
  #targetHead: Head | null = null
  #following: Promise<void> | null = null
  #stateRead = Promise.withResolvers<void>()
  /** The newest head whose read is deferred. */
  #deferredHead: Head | null = null
  #heartbeatAgain = false
  #targetsDueAt = 0
  #isHeartbeating = false
  #timer: Timer | null = null
  #primaryHead: Head | null = null
  /** The head of the handshake: revocations up to it may not have waited for this worker. */
  #handshakeHead: Head | null = null
  /** The newest head from the stream, and when a heartbeat first knew one that the stream had not brought. */
  #streamHead: Head | null = null
  #stalled: { head: Head; since: number } | null = null
  /** When the control plane last showed that it can read the primary, by the monotonic clock. */
  #primarySeenAt = Number.NEGATIVE_INFINITY
  /** Whether the primary has lost what was acknowledged, and no state of its new history has been read yet. */
  #isHistoryLost = false
  connected = false

  constructor(options: ControlConnectionOptions) {
    this.#options = options
    this.#session = new RuntimeSession(options)
    this.#pendingAcknowledgement = options.outbox.acknowledged
    this.#shipper = new Shipper({
      outbox: options.outbox,
      random: options.random,
      clock: options.clock,
      lingerMs: options.lingerMs,
      post: (lines) => this.#post(lines),
      onBroken: (failure, after) => this.#broken(failure, after),
      onAgreed: options.onAgreed,
      onFailure: (failure) => {
        this.#unauthorized(failure)
        options.log.warn({ code: failure.code, reason: failure.message }, 'Events could not be shipped yet')
      },
    })
  }

  start(): void {
    void this.#stayConnected()
    this.#timer = setInterval(() => void this.#tick(), this.#options.heartbeatEveryMs)
  }

  /** Ships what is left and disconnects within `milliseconds`. Shipping takes three quarters of it at most. */
  async stop(milliseconds: number): Promise<void> {
    const { client, clock, worker } = this.#options
    const end = clock.monotonic() + milliseconds
    while (this.connected && !this.#shipper.done && clock.monotonic() < end - milliseconds / 4) await Bun.sleep(5)
    const { token } = this.#session
    const streamId = this.#streamId
    const heard = this.connected && clock.monotonic() - this.#primarySeenAt < primaryRecentMs
    this.#end()
    if (token === null || streamId === null || !heard || !this.#forgetFreshness()) return
    // If this is not received, the worker counts as unreachable until its staleness limit.
    const deregister = client.deregister(token, { worker, stream_id: streamId }).catch(this.#logTransient)
    await Promise.race([deregister, Bun.sleep(Math.max(0, end - clock.monotonic()))])
  }

  #forgetFreshness(): boolean {
    try {
      this.#options.onDeregistering()
      return true
    } catch (error) {
      this.#options.log.warn(
        { error: String(error) },
        'The worker does not deregister: its stored freshness could not be deleted',
      )
      return false
    }
  }

  /** The state has advanced: wakes what waits for it. */
  stateRead(): void {
    this.#stateRead.resolve()
    this.#stateRead = Promise.withResolvers()
  }

  /** Asks for slots and returns some. Rejects if the control plane cannot be reached at the moment. */
  async slots(balances: readonly SlotBalance[]): Promise<SlotsReply> {
    const { client, worker } = this.#options
    const streamId = this.#streamId
    if (streamId === null) throw new Failure('dependency_unavailable')
    return await client.slots(await this.#session.ensure(), { worker, stream_id: streamId, balances })
  }

  /** Reports what an MCP server offers. Rejects if the control plane cannot be reached. */
  async mcpOffers(report: OfferReport): Promise<void> {
    await this.#options.client.mcpOffers(await this.#session.ensure(), report)
  }

  /** Asks for the access token of a caller's own account. Rejects if the control plane cannot be reached. */
  async personToken(request: PersonTokenRequest): Promise<PersonTokenReply> {
    return await this.#options.client.personToken(await this.#session.ensure(), request)
  }

  /** Says what batches used that ended, and asks which ones to follow. Rejects if the control plane is out of reach. */
  async batches(settled: readonly BatchUse[]): Promise<BatchesReply> {
    const { client, worker } = this.#options
    const streamId = this.#streamId
    if (streamId === null) throw new Failure('dependency_unavailable')
    return await client.batches(await this.#session.ensure(), { worker, stream_id: streamId, settled })
  }

  /** Which files or batches an owner has made. Rejects if the control plane is out of reach. */
  async batchObjects(query: ObjectsQuery): Promise<ObjectsReply> {
    const { client, worker } = this.#options
    const streamId = this.#streamId
    if (streamId === null) throw new Failure('dependency_unavailable')
    return await client.batchObjects(await this.#session.ensure(), { worker, stream_id: streamId, ...query })
  }

  /** The head of the primary from the last message of the control plane. */
  get primaryHead(): Head | null {
    return this.#primaryHead
  }

  /** Where the state is, with a new read credential. */
  async credential() {
    return await this.#options.client.credential(await this.#session.ensure())
  }

  /**
   * Reports revocations of a history that the primary has lost, in batches. When it resolves, all are durable. Returns
   * the primary's head after that.
   */
  async reportRevocations(history: string, revocations: readonly RevocationEntry[]): Promise<Head> {
    const { client, worker } = this.#options
    const some = revocations.slice(0, revocationBatchLimit)
    const { head } = await this.#withStream((session, streamId) =>
      client.revocations(session, { worker, stream_id: streamId, history, revocations: some }),
    )
    return revocations.length > revocationBatchLimit
      ? await this.reportRevocations(history, revocations.slice(revocationBatchLimit))
      : head
  }

  /** Whether the control plane refuses the runtime token. Then only another token helps. */
  get tokenRefused(): boolean {
    return this.#session.tokenRefused
  }

  /** Why the control plane refused this gateway at the last attempt. */
  get refusal(): Failure | null {
    return this.#session.refusal
  }

  get #stopped(): boolean {
    return this.#stopping.signal.aborted
  }

  async #stayConnected(): Promise<void> {
    for (let attempt = 0; !this.#stopped; attempt++) {
      try {
        await this.#session.ensure()
        await this.#followStream(() => {
          attempt = 0
        })
      } catch (error) {
        const failure = asFailure(error)
        this.#unauthorized(failure)
        if (failure.code === 'worker_fenced') this.#fenced()
        if (!this.#stopped) {
          const { code, message: reason } = failure
          this.#options.log.warn({ code, reason }, 'The control plane is unreachable, or refuses this gateway')
        }
      }
      this.connected = false
      if (!this.#stopped) await Bun.sleep(backoff(attempt, this.#options.random))
    }
  }

  async #followStream(onHandshake: () => void): Promise<void> {
    const stream = new AbortController()
    this.#stream = stream
    this.#streamAskedAt = this.#options.clock.monotonic()
    let silence: Timer | null = null
    const heard = () => {
      if (silence !== null) clearTimeout(silence)
      silence = setTimeout(() => stream.abort(), streamSilenceMs)
    }
    heard()
    try {
      const session = await this.#session.ensure()
      // Opening takes the worker over, also from our own former stream: calls with its id would be answered as fenced.
      // So nothing is sent until the handshake brings the new id.
      this.#streamId = null
      this.#streamAskedAt = this.#options.clock.monotonic()
      const { client, worker, process } = this.#options
      const since = this.#takenAt ?? undefined
      const acknowledged = Math.max(this.#options.outbox.acknowledgedEvent, this.#options.agreedEvent())
      const ledgerEpoch = [...this.#ledgerEpoch]
      const said = {
        worker,
        process,
        since,
        acknowledged,
        ledger_epoch: ledgerEpoch,
        stale_after_ms: this.#options.staleAfterMs(),
      }
      const body = await client.stream(session, said, stream.signal)
      const take = (data: string) => {
        const message = streamMessageSchema.parse(JSON.parse(data))
        if (message.kind === 'handshake') onHandshake()
        this.#handle(message)
      }
      await readEventStream(body, take, heard)
    } finally {
      if (silence !== null) clearTimeout(silence)
      this.#stream = null
    }
  }

  #handle(message: StreamMessage): void {
    if (message.kind === 'fenced') this.#reconnect(new Failure('worker_fenced'))
    else if (message.kind === 'handshake') this.#handshake(message)
    else if (message.kind === 'slots') this.#options.onSlotsRecalled(message.account, message.want, message.at)
    else if (message.kind === 'recall') this.#options.onRecalled(message.accounts)
    else this.#change(message).catch((error: unknown) => this.#reconnect(error))
  }

  #handshake({
    stream_id: streamId,
    taken_at: takenAt,
    head,
    events,
    max_staleness_seconds: staleness,
    now,
  }: Handshake): void {
    this.#takenAt = takenAt
    if (staleness !== undefined) this.#options.onStaleness(staleness, true)
    const forkedAfter = this.#options.forkedAfter(events)
    if (forkedAfter !== null) {
      const forked = new Failure('chain_fork', { message: 'The ledger has other events of this chain' })
      this.#streamId = streamId
      void this.#options.onForked().then(() => this.#retired(forked, forkedAfter))
      return
    }
    this.#options.onAgreed({ seq: events.seq, digest: events.digest })
    this.#streamId = streamId
    this.connected = true
    this.#targetHead = null
    this.#primaryHead = head
    this.#handshakeHead = head
    this.#streamHead = head
    this.#stalled = null
    this.#primarySeenAt = this.#options.clock.monotonic()
    this.#options.onTime(Date.parse(now), this.#streamAskedAt)
    this.#shipper.resume(events)
    this.#options.onConnected()
    // A primary behind the acknowledged version was restored from an older copy, so its versions are new ones.
    const known = this.#pendingAcknowledgement
    const restored = this.#isHistoryLost || (known?.history === head.history && known.version > head.version)
    this.#catchUpAndAcknowledge(head, restored).catch((error: unknown) => this.#reconnect(error))
  }

  /** The worker serves once a heartbeat has found it connected, so revocations wait for its acknowledgement. */
  async #catchUpAndAcknowledge(head: Head, restored: boolean): Promise<void> {
    const before = this.#pendingAcknowledgement
    await this.#catchUp(head, restored)
    if (this.#pendingAcknowledgement === before) this.#acknowledge()
  }

  /**
   * Refuses the tokens, makes that durable, acknowledges, then reads the state. Everything up to the first wait
   * happens in this tick.
   */
  async #change({ head, since, revoked: hashes, end_requests: endRequests, only_revocations }: Change): Promise<void> {
    const { outbox, view } = this.#options
    const streamId = this.#streamId
    const position = positionOf(head)
    this.#primaryHead = head
    if (!this.#wasStreamed(head)) this.#streamHead = head
    view.revoke(position, hashes)
    if (hashes.length > 0) this.#options.onRevoked(hashes)
    if (endRequests.length > 0) this.#options.onEndRequests(endRequests)
    const before = this.#pendingAcknowledgement
    const follows = before?.history === position.history && before.version >= since && before.version < position.version
    if (follows) {
      this.#pendingAcknowledgement = position
      this.#pendingAcknowledgementHead = head
    }
    try {
      await outbox.recordRevocations(position, hashes, follows ? position : before, since)
    } catch (error) {
      this.#pendingAcknowledgement = outbox.acknowledged
      throw error
    }
    if (follows) this.#acknowledge()
    if (streamId !== this.#streamId) return
    if (only_revocations && follows) this.#followDeferred(head)
    else this.#follow(head)
  }

  /**
   * The tokens of this head are refused already. The state is read later, when the workers of all hosts have
   * acknowledged, and once for all such changes that came meanwhile.
   */
  #followDeferred(head: Head): void {
    const waiting = this.#deferredHead !== null
    this.#deferredHead = head
    if (waiting) return
    const followNow = () => {
      const newest = this.#deferredHead
      this.#deferredHead = null
      if (newest !== null && newest.history === this.#primaryHead?.history) this.#follow(newest)
    }
    const { random, staleAfterMs } = this.#options
    const delay = Math.min(maxDeferMs, staleAfterMs() * deferShare)
    setTimeout(followNow, (delay * (1 + random())) / 2).unref()
  }

  /** Reads up to one head at a time, then up to the newest, so that many changes share the polls of a lagging state. */
  #follow(head: Head): void {
    if (this.#targetHead?.history === head.history && this.#targetHead.version > head.version) return
    this.#targetHead = head
    this.#following ??= this.#followTarget()
      .catch((error: unknown) => this.#reconnect(error))
      .finally(() => {
        this.#following = null
      })
  }

  async #followTarget(): Promise<void> {
    while (this.#targetHead !== null) {
      const head = this.#targetHead
      this.#targetHead = null
      await this.#catchUp(head)
    }
  }

  /**
   * Reads the state until it is at this head, then acknowledges it. A state that cannot be read counts as one that
   * lags behind. Stops when a newer stream is opened, since its handshake names the head again.
   */
  async #catchUp(head: Head, restored = false): Promise<void> {
    const { outbox, view } = this.#options
    const streamId = this.#streamId
    if (restored) {
      view.holdRevocations(true)
      await this.#options.onRestored(head)
      view.holdRevocations(false)
      this.#isHistoryLost = false
    }
    let lag = this.#options.notifiesStateRead ? maxPollMs : minPollMs
    let askAt = Number.NEGATIVE_INFINITY
    for (;;) {
      const furtherRead = this.#stateRead.promise
      const read = await view.refresh().catch(this.#unreadable)
      if (this.#stopped || streamId !== this.#streamId) return
      if (read !== null) {
        // Drops revocations of a history that the control plane has left. The state says nothing about a history still
        // to come.
        const current = read.history === head.history
        outbox.applied(positionOf(read), (hash) => current && view.refuses(hash))
        if (this.#options.freshness.read(read)) this.#options.onFresh()
      }
      if (read !== null && reaches(read, head)) break
      // Asks once, and again only after a long time without progress, because each request is a sync with the primary.
      const now = this.#options.clock.monotonic()
      if (now >= askAt) {
        askAt = now + maxPollMs
        this.#options.onReplicaBehind()
      }
      if (read !== null && isAt(read, positionOf(head))) await this.#options.onRestored(head)
      await within(lag, furtherRead)
      lag = Math.min(maxPollMs, lag * 2)
    }
    this.#askForKeys()
    const position = positionOf(head)
    const known = this.#pendingAcknowledgement
    if (known?.history === position.history && known.version === position.version)
      this.#pendingAcknowledgementHead = head
    if (!restored && known?.history === position.history && known.version >= position.version) return
    this.#pendingAcknowledgement = position
    this.#pendingAcknowledgementHead = head
    try {
      await outbox.recordRevocations(position, [], position)
    } catch (error) {
      this.#pendingAcknowledgement = outbox.acknowledged
      throw error
    }
    this.#acknowledge()
  }

  /** A provider or MCP server made after bootstrap has a key that this gateway lacks: bootstrap brings it. */
  #askForKeys(): void {
    const { view } = this.#options
    const closed = [...view.closedProviders, ...view.mcp.closed].join()
    if (closed !== '' && closed !== this.#requestedKeys) this.#session.renewSoon()
    this.#requestedKeys = closed
  }

  /** Sends a heartbeat as soon as possible. Acknowledgements that come while one is in flight share the next one. */
  #acknowledge(): void {
    this.#heartbeatAgain = true
    if (this.#isHeartbeating) return
    this.#isHeartbeating = true
    void this.#heartbeatWhileNeeded()
  }

  async #heartbeatWhileNeeded(): Promise<void> {
    while (this.#heartbeatAgain && !this.#stopped) {
      this.#heartbeatAgain = false
      await within(nextHeartbeatMs, this.#heartbeat())
    }
    this.#isHeartbeating = false
  }

  async #tick(): Promise<void> {
    if (this.#session.due && this.connected) void this.#session.ensure().catch(this.#logTransient)
    const { notifiesStateRead, view } = this.#options
    if (!notifiesStateRead || view.head === null) void view.refresh().catch(this.#logTransient)
    const unanswered = this.#stream !== null && this.#streamId === null
    if (unanswered && this.#options.clock.monotonic() - this.#streamAskedAt >= handshakeTimeoutMs)
      this.#reconnect(stalledStream())
    await this.#heartbeat()
  }

  readonly #unreadable = (error: unknown): null => {
    this.#logTransient(error)
    return null
  }

  /** The next tick retries what this one could not do. Nothing is lost, and staleness bounds the delay. */
  readonly #logTransient = (error: unknown): void => {
    const { code, message } = asFailure(error)
    this.#options.log.debug({ code, reason: message }, 'A periodic task failed and will be tried again')
  }

  async #heartbeat(): Promise<void> {
    const { client, worker, outbox, view, clock } = this.#options
    const { token } = this.#session
    const streamId = this.#streamId
    if (streamId === null || token === null || this.#stopped) return
    const sent = instant(clock)
    const acknowledged = outbox.acknowledged?.history === view.head?.history ? outbox.acknowledged : null
    try {
      const reply = await client.heartbeat(token, {
        worker,
        stream_id: streamId,
        acknowledged_version: acknowledged?.version ?? 0,
        history: view.head?.history ?? '',
        nonce: [this.#pendingAcknowledgementHead, view.head].find((each) => isAt(each, acknowledged))?.nonce ?? '',
        stale_after_ms: this.#options.staleAfterMs(),
        ...this.#targetsWhenDue(sent.monotonic),
      })
      const { fresh, head, history, ledger_epoch: ledgerEpoch, max_staleness_seconds: staleness, now } = reply
      this.#options.onTime(Date.parse(now), sent.monotonic)
      // This answer belongs to a former stream. The handshake of the new one is newer.
      if (this.#stopped || streamId !== this.#streamId) return
      if (fresh) this.#primarySeenAt = clock.monotonic()
      if (staleness !== undefined) this.#options.onStaleness(staleness, false)
      // A heartbeat that was sent before the last grants may lack them.
      this.#ledgerEpoch = sent.monotonic > this.#grantsAt ? ledgerEpoch : mergeCounts(this.#ledgerEpoch, ledgerEpoch)
      this.#primaryHead = head
      this.#detectStall(head)
      if (history === 'unknown' && acknowledged !== null) this.#startOver()
      else if (!this.#hasRevocationsUpTo(head)) this.#follow(head)
      else if (
        fresh &&
        this.#hasRevocationsUpTo(this.#handshakeHead) &&
        this.#options.freshness.heard(head, sent, view.head)
      )
        this.#options.onFresh()
    } catch (error) {
      const failure = asFailure(error)
      this.#unauthorized(failure)
      if (failure.code === 'worker_fenced' && streamId === this.#streamId) this.#reconnect(failure)
      else this.#options.log.debug({ code: failure.code }, 'A heartbeat was not answered')
    }
  }

  #targetsWhenDue(now: number): { targets?: TargetHealth[] } {
    if (now < this.#targetsDueAt) return {}
    this.#targetsDueAt = now + targetsEveryMs
    return { targets: [...this.#options.targets()] }
  }

  /** Detects a stream that transports bytes but swallows messages: the heartbeats know newer heads than it brings. */
  #detectStall(head: Head): void {
    const now = this.#options.clock.monotonic()
    if (this.#stalled !== null && this.#wasStreamed(this.#stalled.head)) this.#stalled = null
    if (this.#stalled === null && !this.#wasStreamed(head)) this.#stalled = { head, since: now }
    if (this.#stalled === null || now - this.#stalled.since < stalledMs) return
    this.#stalled = null
    this.#reconnect(stalledStream())
  }

  #wasStreamed({ history, version: at }: Head): boolean {
    return this.#streamHead?.history === history && this.#streamHead.version >= at
  }

  /** The primary does not know what this worker acknowledged. The next handshake gives its present head. */
  #startOver(): void {
    if (this.#isHistoryLost) return
    this.#isHistoryLost = true
    this.#reconnect(new Failure('state_replaced'))
  }

  /** Whether all revocations up to this head are in force here. */
  #hasRevocationsUpTo(head: Head | null): boolean {
    if (head === null) return false
    const { outbox, view } = this.#options
    const reaches = (position: StatePosition | null) =>
      position !== null && position.history === head.history && position.version >= head.version
    return reaches(outbox.acknowledged) || reaches(view.head)
  }

  /** Sends a lease message. Rejects if the control plane is unreachable. */
  async leases(request: LeaseRequest): Promise<LeaseReply> {
    const { client, clock, worker } = this.#options
    try {
      const reply = await this.#withStream((session, streamId) => client.leases(session, worker, streamId, request))
      if (reply.ledger_epoch !== undefined) {
        this.#ledgerEpoch = mergeCounts(this.#ledgerEpoch, reply.ledger_epoch)
        this.#grantsAt = clock.monotonic()
      }
      return reply
    } catch (error) {
      const failure = asFailure(error)
      this.#unauthorized(failure)
      if (failure.code === 'worker_rolled_back') this.#retired(failure, this.#options.outbox.acknowledgedEvent)
      throw failure
    }
  }

  #post(lines: Buffer<ArrayBuffer>) {
    const { client, worker } = this.#options
    return this.#withStream((session, streamId) => client.events(session, worker, streamId, lines))
  }

  async #withStream<Result>(call: (session: string, streamId: string) => Promise<Result>): Promise<Result> {
    const session = await this.#session.ensure()
    const streamId = this.#streamId
    if (streamId === null) throw new Failure('dependency_unavailable')
    try {
      return await call(session, streamId)
    } catch (error) {
      const failure = asFailure(error)
      // Fenced by our own next stream, not by another process.
      const outlived = failure.code === 'worker_fenced' && streamId !== this.#streamId
      throw outlived ? new Failure('dependency_unavailable', { cause: failure }) : failure
    }
  }

  #broken(failure: Failure, after: number): void {
    if (failure.code === 'chain_fork' || failure.code === 'chain_lost') this.#retired(failure, after)
    else this.#reconnect(failure)
  }

  /**
   * Reopens the stream; the next handshake gives the head again. A fenced worker asks once more: it is lost only if
   * another process took it later, and not if the ledger is an older copy with an earlier stream.
   */
  #reconnect(error: unknown): void {
    if (this.#stopped) return
    const { code, message } = asFailure(error)
    this.#options.log.warn({ code, reason: message }, 'The change stream is reopened')
    this.#stream?.abort()
  }

  #unauthorized(failure: Failure): void {
    if (failure.status === 401) this.#session.refused()
  }

  #fenced(): void {
    if (this.#stopped) return
    this.#end()
    this.#options.onFenced()
  }

  #retired(failure: Failure, after: number): void {
    if (this.#stopped) return
    this.#end()
    this.#options.onRetired(failure, after)
  }

  #end(): void {
    this.connected = false
    this.#shipper.stop()
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#stopping.abort()
    this.#stream?.abort()
  }
}

const stalledStream = (): Failure =>
  new Failure('dependency_unavailable', { message: 'The change stream does not deliver changes' })

/** Resolves with the work, or after this time. */
async function within(milliseconds: number, work: Promise<void>): Promise<void> {
  const late = Promise.withResolvers<void>()
  const timer = setTimeout(late.resolve, milliseconds)
  await Promise.race([work, late.promise])
  clearTimeout(timer)
}

const isAt = (head: Head | null, position: StatePosition | null): boolean =>
  head !== null && head.history === position?.history && head.version === position.version

const positionOf = ({ history, version: at }: Head): StatePosition => ({ history, version: at })

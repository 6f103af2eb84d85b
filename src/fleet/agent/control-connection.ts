/**
 * Keeps one worker connected to its control plane (fleet/README.md): bootstrap and renewal of the session,
 * the change stream, the heartbeat, and shipping. Everything is tried again with backoff until `stop`.
 *
 * A change: its tokens are denied in memory in the same tick, the denial is committed to the outbox, then acknowledged
 * by a heartbeat; only then the state is read. A version is acknowledged where it follows the last acknowledged one, or when
 * the state itself has been read up to it: what was missed while the stream was down is then known from there.
 *
 * Freshness comes from the worker's own heartbeats only: as of the moment one was sent, if the control plane had just read the
 * primary, this worker knows all denials up to the versions that it and the hello told, and the state has come to it since.
 *
 * Whoever says goodbye is waited for by no revoke any more: what it was fresh by is forgotten first, and the next start
 * serves once it has heard a hello. Where nobody hears a goodbye, none is said: the worker counts as unreachable then, and
 * may serve again by what it kept.
 *
 * Longer than most: what one connection knows is one state; what stands alone is in files of its own.
 */
import { asFailure, Failure } from '../../failure.ts'
import type { Log } from '../../lib/log/log.ts'
import type { OfferReport } from '../../mcp/offers/offer-report.ts'
import type { Head } from '../../store/propagation.ts'
import type { LeaseReply, LeaseRequest } from '../../usage/lease/lease.ts'
import type { SlotBalance, SlotsReply } from '../../usage/rate/rate-protocol.ts'
import type { RevocationEntry } from '../coordinator/lost-revocations.ts'
import type { Outbox } from '../outbox/outbox.ts'
import type { StatePosition } from '../outbox/record.ts'
import { backoff } from '../protocol/backoff.ts'
import { readEventStream } from '../protocol/event-stream.ts'
import {
  type AnnouncedHead,
  type ChainHead,
  type HeartbeatReply,
  revocationBatchLimit,
  type StreamMessage,
  streamMessageSchema,
  streamSilenceMs,
} from '../protocol/wire.ts'
import type { FileStateView } from '../state/state-view.ts'
import { type Freshness, instant, reaches } from './freshness.ts'
import { RuntimeSession, type RuntimeSessionOptions } from './runtime-session.ts'
import { Shipper } from './shipper.ts'

/** How soon a state that is behind is looked at again: ever later, where nobody says that it has come further. */
const minPollMs = 5
const maxPollMs = 500
/**
 * What need not hurry waits so long at most, and half of that at least: what comes meanwhile is read with it, and not all
 * hosts ask the primary at once. It is a small share of the time for which a worker serves without news, which do not
 * count while the state is behind.
 */
const maxDeferMs = 1500
const deferShare = 0.1
/** How old the last sign of the primary may be for a goodbye to be worth what it costs: it is written there. */
const primaryRecentMs = 3000
/** A stream that passes bytes is opened anew when it has not told for so long what a heartbeat knew, or has brought no hello. */
const stalledMs = 5000
const handshakeTimeoutMs = streamSilenceMs
/** After so long an acknowledgement does not wait for the answer to the one before it. */
const nextHeartbeatMs = 1000

export interface ControlConnectionOptions extends RuntimeSessionOptions {
  worker: number
  /** Names this process to the control plane. */
  process: string
  outbox: Outbox
  view: FileStateView
  freshness: Freshness
  log: Log
  random: () => number
  heartbeatEveryMs: number
  lingerMs: number
  onDenied(hashes: readonly string[]): void
  onCut(hashes: readonly string[]): void
  /** The control plane's time in an answer that has just come, milliseconds since the epoch, asked for at this instant. */
  onTime(now: number, askedAt: number): void
  onFresh(): void
  /** Forgets for good by what it might serve, as a goodbye is to be said. Throws where it cannot. */
  onDeregistering(): void
  /** For how long it serves without fresh news. */
  staleAfterMs(): number
  /** The control plane's `max_staleness`; for longer than before only where it has written that down. */
  onStaleness(seconds: number, written: boolean): void
  /** The primary has more than the state that is read. */
  onReplicaBehind(): void
  /** Whether `stateRead` is called when the state that is read has come further. */
  notifiesStateRead: boolean
  /**
   * The primary has another history than the state that is read, from which it was restored or replaced. Resolves when
   * the state that is read is the primary's.
   */
  onRestored(head: Head): Promise<void>
  /** Another worker needs slots of a limit. */
  onSlotsRecalled(account: string, want: number, at: number): void
  /** The control plane can be asked for shares of limits: it waits for a hello. */
  onConnected(): void
  /** Whether the ledger's chain is this worker's: null, or the number up to which both are the same. */
  forkedAfter(announced: AnnouncedHead): number | null
  /** The last event that the control plane was known to have, also over a restart. */
  agreedEvent(): number
  /** The control plane has the chain up to here as it is here. */
  onAgreed(head: ChainHead): void
  /** It wants shares of these accounts back. */
  onRecalled(accounts: readonly string[]): void
  /** Another process has taken the worker since this one held it: this one must end. */
  onFenced(): void
  /** The ledger has events that this worker has lost: what it held of limits is said to be so too, before it ends. */
  onForked(): Promise<void>
  /** This instance's chain cannot go on: another instance must begin, with what this one has behind event `after`. */
  onRetired(failure: Failure, after: number): void
}

type Change = Extract<StreamMessage, { kind: 'change' }>
type Handshake = Extract<StreamMessage, { kind: 'handshake' }>

export class ControlConnection {
  readonly #options: ControlConnectionOptions
  readonly #shipper: Shipper
  readonly #stopping = new AbortController()
  readonly #session: RuntimeSession
  /** The providers and MCP servers without a key that bootstrap was last asked for. */
  #requestedKeys = ''
  #streamId: string | null = null
  /** When this process last took the worker, in the ledger's time. */
  #takenAt: number | null = null
  /** What the ledger has, as the last heartbeat told it. */
  #ledgerEpoch: HeartbeatReply['ledger_epoch'] = []
  /** When the stream was asked for, by the monotonic clock. */
  #streamAskedAt = 0
  #stream: AbortController | null = null
  /** What is or will be acknowledged when the records on their way are committed. */
  #pendingAcknowledgement: StatePosition | null
  /** The head of the last version that was promised, by whose nonce the control plane knows that it is its own. */
  #pendingAcknowledgementHead: Head | null = null
  /** The newest head that the state is to be read up to, and what reads up to one before it. */
  #targetHead: Head | null = null
  #following: Promise<void> | null = null
  #stateRead = Promise.withResolvers<void>()
  /** The newest head that the state is to be read up to without hurry. */
  #deferredHead: Head | null = null
  #heartbeatAgain = false
  #isHeartbeating = false
  #timer: Timer | null = null
  #primaryHead: Head | null = null
  /** The head that the hello told: revokes up to it may not have waited for this worker. */
  #handshakeHead: Head | null = null
  /** The newest head that the stream has told, and when a heartbeat first told of one that the stream had not. */
  #streamHead: Head | null = null
  #stalled: { head: Head; since: number } | null = null
  /** When the control plane last showed that it has the primary, by the monotonic clock. */
  #primarySeenAt = Number.NEGATIVE_INFINITY
  /** Whether the primary has lost what was acknowledged, and no state of its present history is read yet. */
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

  /** Ships what is left and lets go, within `milliseconds`, of which shipping takes three quarters at most. */
  async stop(milliseconds: number): Promise<void> {
    const { client, clock, worker } = this.#options
    const end = clock.monotonic() + milliseconds
    while (this.connected && !this.#shipper.done && clock.monotonic() < end - milliseconds / 4) await Bun.sleep(5)
    const { token } = this.#session
    const streamId = this.#streamId
    const heard = this.connected && clock.monotonic() - this.#primarySeenAt < primaryRecentMs
    this.#end()
    if (token === null || streamId === null || !heard || !this.#forgetFreshness()) return
    // Where it is not heard, this worker counts as unreachable until its time is over.
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
        'No goodbye is said: what it might serve by could not be removed',
      )
      return false
    }
  }

  /** The state that is read has come further: whoever waits for it looks. */
  stateRead(): void {
    this.#stateRead.resolve()
    this.#stateRead = Promise.withResolvers()
  }

  /** Asks for slots and returns some. Rejects where the control plane cannot be asked at this moment. */
  async slots(balances: readonly SlotBalance[]): Promise<SlotsReply> {
    const { client, worker } = this.#options
    const streamId = this.#streamId
    if (streamId === null) throw new Failure('dependency_unavailable')
    return await client.slots(await this.#session.ensure(), { worker, stream_id: streamId, balances })
  }

  /** Tells what an MCP server offers. Rejects where the control plane cannot be reached. */
  async mcpOffers(report: OfferReport): Promise<void> {
    await this.#options.client.mcpOffers(await this.#session.ensure(), report)
  }

  /** The head of the primary as the control plane said it last. */
  get primaryHead(): Head | null {
    return this.#primaryHead
  }

  /** Where the state is, with a credential that was just made. */
  async credential() {
    return await this.#options.client.credential(await this.#session.ensure())
  }

  /**
   * Tells which tokens were denied by a history that the primary has lost, in pieces; all are durable at the end. Gives
   * the primary's head of then.
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

  /** Whether the control plane refuses the runtime token: then nothing but another token helps. */
  get tokenRefused(): boolean {
    return this.#session.tokenRefused
  }

  /** Why the control plane let this gateway not in when it was last asked. */
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
          this.#options.log.warn({ code, reason }, 'The control plane is out of reach, or lets this gateway not in')
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
      // Opening takes the worker over, from our own former stream too: what still goes out by that one's id would be
      // answered as fenced. Nothing is sent until the hello brings the new id.
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
    // A primary that is behind what was acknowledged was restored from an older copy: its versions are new ones.
    const known = this.#pendingAcknowledgement
    const restored = this.#isHistoryLost || (known?.history === head.history && known.version > head.version)
    this.#catchUpAndAcknowledge(head, restored).catch((error: unknown) => this.#reconnect(error))
  }

  /** It serves as soon as a heartbeat has found it there, and is waited for until it has said so. */
  async #catchUpAndAcknowledge(head: Head, restored: boolean): Promise<void> {
    const before = this.#pendingAcknowledgement
    await this.#catchUp(head, restored)
    if (this.#pendingAcknowledgement === before) this.#acknowledge()
  }

  /** Denies, makes it durable, acknowledges, then reads the state. Up to the first wait all happens in this tick. */
  async #change({ head, since, deny: hashes, cut, only_revocations }: Change): Promise<void> {
    const { outbox, view } = this.#options
    const streamId = this.#streamId
    const position = positionOf(head)
    this.#primaryHead = head
    if (!this.#wasStreamed(head)) this.#streamHead = head
    view.deny(position, hashes)
    if (hashes.length > 0) this.#options.onDenied(hashes)
    if (cut.length > 0) this.#options.onCut(cut)
    const before = this.#pendingAcknowledgement
    const follows = before?.history === position.history && before.version >= since && before.version < position.version
    if (follows) {
      this.#pendingAcknowledgement = position
      this.#pendingAcknowledgementHead = head
    }
    try {
      await outbox.deny(position, hashes, follows ? position : before, since)
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
   * What this head changed is refused here already: the copy of the state follows once the workers of all hosts, which were
   * told in the same instant, have acknowledged, and once for all such changes that came meanwhile.
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

  /**
   * Reads up to one head at a time, the next being the newest: while the state lags behind, changes that come do not each
   * wait for it and look.
   */
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
   * Reads the state until it is at this head, then acknowledges it. A state that cannot be read yet is one that is
   * behind; what a newer stream has to say is followed by that one's own hello.
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
        // Denials of a history that the control plane has left; of one that is still to come the state read says nothing.
        const current = read.history === head.history
        outbox.applied(positionOf(read), (hash) => current && view.refuses(hash))
        if (this.#options.freshness.read(read)) this.#options.onFresh()
      }
      if (read !== null && reaches(read, head)) break
      // Asked for once, and again only where that has brought nothing for long: each time is a sync with the primary.
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
      await outbox.deny(position, [], position)
    } catch (error) {
      this.#pendingAcknowledgement = outbox.acknowledged
      throw error
    }
    this.#acknowledge()
  }

  /** A provider or MCP server that was made since bootstrap has a key that this gateway was not given yet: bootstrap brings it. */
  #askForKeys(): void {
    const { view } = this.#options
    const closed = [...view.closedProviders, ...view.mcp.closed].join()
    if (closed !== '' && closed !== this.#requestedKeys) this.#session.renewSoon()
    this.#requestedKeys = closed
  }

  /** One heartbeat as soon as can be; acknowledgements that come while it is on its way share the next one. */
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

  /** What a tick could not do the next one tries again; until then nothing is lost, and staleness bounds it. */
  readonly #logTransient = (error: unknown): void => {
    const { code, message } = asFailure(error)
    this.#options.log.debug({ code, reason: message }, 'A tick could not do all it had to')
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
      })
      const { fresh, head, history, ledger_epoch: ledgerEpoch, max_staleness_seconds: staleness, now } = reply
      this.#options.onTime(Date.parse(now), sent.monotonic)
      // Of what a stream before this one was told the hello knows more.
      if (this.#stopped || streamId !== this.#streamId) return
      if (fresh) this.#primarySeenAt = clock.monotonic()
      if (staleness !== undefined) this.#options.onStaleness(staleness, false)
      this.#ledgerEpoch = ledgerEpoch
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

  /** A stream that passes bytes and swallows what is said would be believed for ever: heartbeats tell of its silence. */
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

  /** The primary does not know what this worker has acknowledged: the next hello says where it is now. */
  #startOver(): void {
    if (this.#isHistoryLost) return
    this.#isHistoryLost = true
    this.#reconnect(new Failure('state_replaced'))
  }

  /** Whether all denials up to this head are in force here. */
  #hasRevocationsUpTo(head: Head | null): boolean {
    if (head === null) return false
    const { outbox, view } = this.#options
    const reaches = (position: StatePosition | null) =>
      position !== null && position.history === head.history && position.version >= head.version
    return reaches(outbox.acknowledged) || reaches(view.head)
  }

  /** Asks for shares of limits. Rejects where the control plane is out of reach. */
  async leases(request: LeaseRequest): Promise<LeaseReply> {
    const { client, worker } = this.#options
    try {
      return await this.#withStream((session, streamId) => client.leases(session, worker, streamId, request))
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
   * The next hello names the head again. Whoever is told that the worker is another's asks for it once more: only where a
   * process took it later is it lost, and not where the ledger is an older copy that knows an earlier stream.
   */
  #reconnect(error: unknown): void {
    if (this.#stopped) return
    const { code, message } = asFailure(error)
    this.#options.log.warn({ code, reason: message }, 'The change stream is opened again')
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
  new Failure('dependency_unavailable', { message: 'The change stream does not say what there is to say' })

/** Resolves with it, or after so long. */
async function within(milliseconds: number, work: Promise<void>): Promise<void> {
  const late = Promise.withResolvers<void>()
  const timer = setTimeout(late.resolve, milliseconds)
  await Promise.race([work, late.promise])
  clearTimeout(timer)
}

const isAt = (head: Head | null, position: StatePosition | null): boolean =>
  head !== null && head.history === position?.history && head.version === position.version

const positionOf = ({ history, version: at }: Head): StatePosition => ({ history, version: at })

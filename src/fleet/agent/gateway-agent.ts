/**
 * Starts one worker of a gateway: locks the data directory, recovers the outbox, opens the stored keys, and connects.
 * The hot path's calls are answered from memory or one local read (fleet/protocol/worker.ts).
 *
 * The worker is ready when it has keys, has read the state up to the version it once acknowledged, and is not staler
 * than `max_staleness`. With stored keys and freshness that holds without a control plane too.
 *
 * Longer than most: this is where the parts of a worker are connected, and it does little itself.
 */
import { randomBytes as systemRandomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { Settings } from '../../config.ts'
import { asFailure, Failure } from '../../failure.ts'
import type { Clock } from '../../lib/clock.ts'
import { hostTime } from '../../lib/host/host-time.ts'
import { readBootId } from '../../lib/host/platform.ts'
import type { NewId } from '../../lib/ids.ts'
import { lockDirectory } from '../../lib/lock.ts'
import type { Log } from '../../lib/log/log.ts'
import { deriveKey } from '../../lib/seal.ts'
import type { McpSource } from '../../mcp/servers/server-source.ts'
import type { Fetch } from '../../providers/provider.ts'
import type { BatchLedger } from '../../usage/batches/batch-protocol.ts'
import { WorkerUsage } from '../../usage/lease/worker/worker-usage.ts'
import { WorkerRates } from '../../usage/rate/worker-rates.ts'
import { ChainContinuity } from '../outbox/continuity.ts'
import { Outbox, type OutboxOptions, type Recovered } from '../outbox/outbox.ts'
import { unknownBoot } from '../outbox/record.ts'
import { systemFreeBytes, systemWrite } from '../outbox/segment.ts'
import { type BootstrapReply, staleAfterMs, type TargetHealth } from '../protocol/wire.ts'
import type { GatewayStatus, Readiness, StartedWorker, WorkerCounters } from '../protocol/worker.ts'
import { FileStateView } from '../state/state-view.ts'
import { type KeptBootstrap, WorkerFiles } from './agent-files.ts'
import { CheckpointWatermark } from './checkpoint-watermark.ts'
import { controlClient } from './control-client.ts'
import { ControlConnection } from './control-connection.ts'
import { Freshness } from './freshness.ts'
import { GatewayTime } from './gateway-time.ts'
import { type ReplicatorCommand, WorkerReplica } from './worker-replica.ts'

const worker = 0
const keepFreshEveryMs = 5000
/**
 * How long a stopping worker may talk to its control plane. Shorter than its process may run after the last request.
 */
const drainTimeoutMs = 4000
const rateTickMs = 1000
const usageTickMs = 1000
const warnAfterMs = 60_000
const followPollMs = 50

export interface WorkerOptions {
  settings: Pick<
    Settings,
    'max_staleness_seconds' | 'outbox_segment_bytes' | 'outbox_limit_bytes' | 'outbox_keep_hours' | 'usage_wait_seconds'
  >
  /** The state database's file if another process maintains it; null if the worker keeps a replica itself. */
  stateFile: string | null
  /** How to start the replicator; needed without a state file. */
  replicator?: ReplicatorCommand
  /** The worker's files are in its folder `worker`. */
  dataDirectory: string
  apiUrl: string
  /** The gateway's runtime token. */
  apiToken: string
  fetch: Fetch
  clock: Clock
  newId: NewId
  log: Log
  /** For secrets between processes; cryptographically strong. */
  randomBytes?(size: number): Uint8Array
  /** Another process has taken this worker over. This process must end, and must not be restarted at once. */
  onFenced(): void
  /** This instance's chain cannot continue. This process must end, and the next start makes another instance. */
  onRetired(): void
  /** For jitter only. */
  random?: () => number
  heartbeatEveryMs?: number
  shipLingerMs?: number
  drainTimeoutMs?: number
}

/**
 * Starts the worker. Resolves when its own files are recovered; `ready` tells the rest. Throws `conflict` if another
 * process uses the data directory, and `invalid_parameter` if secrets would be sent unencrypted to the control plane.
 */
export async function startWorker(options: WorkerOptions): Promise<StartedWorker> {
  const client = controlClient(options.apiUrl, options.fetch)
  const directory = join(options.dataDirectory, 'worker')
  const lock = lockDirectory(directory)
  if (lock === null) {
    throw new Failure('conflict', { message: `Another gateway process uses ${directory}` })
  }
  try {
    const running = new RunningWorker(options, directory, client, () => lock.release())
    await running.startFromKept()
    return running
  } catch (error) {
    lock.release()
    throw error
  }
}

class RunningWorker implements StartedWorker {
  readonly journal: Outbox
  readonly view: FileStateView
  readonly status: GatewayStatus
  readonly counters: WorkerCounters
  readonly usageLimits: WorkerUsage
  readonly rates: WorkerRates
  readonly batches: BatchLedger
  readonly mcp: McpSource
  readonly #replica: WorkerReplica | null
  readonly #rateTimer: Timer
  readonly #options: WorkerOptions
  readonly #hostTime: () => number
  /** Identifies this process to the control plane. */
  readonly #process: string
  readonly #files: WorkerFiles
  readonly #continuity: ChainContinuity
  readonly #freshness: Freshness
  readonly #session: ControlConnection
  readonly #watermark: CheckpointWatermark
  readonly #release: () => void
  readonly #usageTimer: Timer
  /** Until the first handshake: how many events the last process, or a host crash, left. */
  #trustedEvents: number | null
  readonly #revocationListeners: ((hashes: readonly string[]) => void)[] = []
  #readTargets: () => readonly TargetHealth[] = () => []
  readonly #endRequestsListeners: ((hashes: readonly string[]) => void)[] = []
  #kept: KeptBootstrap | null = null
  #leaseMessages = 0
  /** HMAC with the key of prompts. It is copied for each prompt, which costs a fourth of preparing it. */
  #promptHasher = new Bun.CryptoHasher('sha256', Buffer.alloc(0))
  #storedIdKey: Uint8Array = new Uint8Array(0)
  #staleAfterMs: number
  readonly #time: GatewayTime
  #freshKeptAt = Number.NEGATIVE_INFINITY
  #loadFailure: Failure | null = null
  /**
   * Whether the state has reached the version acknowledged before the start. From then on revocations cover its lag.
   */
  #current = false
  #ended = false
  readonly #served = Promise.withResolvers<void>()

  constructor(
    options: WorkerOptions,
    directory: string,
    client: ReturnType<typeof controlClient>,
    release: () => void,
  ) {
    this.#options = options
    this.#hostTime = hostTime(options.clock)
    this.#process = options.newId()
    this.#release = release
    const { clock, log } = options
    this.#files = new WorkerFiles(directory, options.apiToken, options.newId)
    this.#time = new GatewayTime(clock, clock.now() + this.#files.clockOffset())
    const outboxDirectory = (instanceId: string) => join(directory, 'outbox', instanceId, String(worker))
    this.journal = new Outbox({
      ...this.#outboxOptions(outboxDirectory(this.#files.instanceId)),
      onRecovered: (recovered) => {
        if (hasCrashed(recovered)) this.#files.crashed(recovered.events)
      },
    })
    this.#continuity = new ChainContinuity({
      ...{ files: this.#files, journal: this.journal, clock, newId: options.newId, log },
      outboxOf: (instanceId) => ({
        directory: outboxDirectory(instanceId),
        open: () => new Outbox(this.#outboxOptions(outboxDirectory(instanceId))),
      }),
    })
    this.#reportRecovery()
    this.#trustedEvents = this.#files.crashedAfter ?? this.journal.recovered.events
    this.usageLimits = this.#makeUsageLimits()
    this.#usageTimer = setInterval(() => {
      this.#noteReady()
      this.usageLimits.tick()
      void this.#sumRefusals()
    }, usageTickMs)
    this.#usageTimer.unref()
    this.#replica = this.#makeReplica()
    const stateFile = this.#replica?.file ?? options.stateFile ?? ''
    this.view = new FileStateView(stateFile, (reason) => {
      this.#replica?.damaged(reason)
    })
    for (const { position, hashes } of this.journal.revocations) this.view.revoke(position, hashes)
    this.#freshness = new Freshness(clock, this.#files.freshAt())
    this.#staleAfterMs = this.#files.freshFor() ?? staleAfterMs(options.settings.max_staleness_seconds)
    this.#watermark = new CheckpointWatermark({
      ...{ stateFile, keptFile: join(directory, 'checkpoint.json'), newId: options.newId, log },
      clock: { now: () => this.now() },
      gatewayId: () => this.status.gatewayId,
      record: (event) =>
        void this.journal.refuse(event).catch((error: unknown) => {
          log.error({ error: String(error) }, 'A checkpoint that went back could not be recorded')
        }),
    })
    this.status = this.#makeStatus()
    this.counters = this.#makeCounters()
    this.#session = new ControlConnection({
      client,
      runtimeToken: options.apiToken,
      instanceId: this.#files.instanceId,
      worker,
      process: this.#process,
      outbox: this.journal,
      view: this.view,
      freshness: this.#freshness,
      clock,
      log,
      random: options.random ?? Math.random,
      heartbeatEveryMs: options.heartbeatEveryMs ?? 1000,
      lingerMs: options.shipLingerMs ?? 3,
      onBootstrap: (reply) => this.#bootstrapped(reply),
      onRefused: () => {
        const { code, message } = new Failure('runtime_token_refused')
        log.error({ code }, message)
      },
      onRevoked: (hashes) => this.#announceRevoked(hashes),
      onEndRequests: (hashes) => {
        for (const listener of this.#endRequestsListeners) listener(hashes)
      },
      onTime: (now, askedAt) => this.#time.synchronize(now, askedAt),
      onFresh: () => {
        this.#noteReady()
        this.#keepFresh(keepFreshEveryMs)
      },
      onDeregistering: () => {
        this.#freshness.end()
        this.#files.forgetFresh()
      },
      staleAfterMs: () => this.#staleAfterMs,
      targets: () => this.#readTargets(),
      onStaleness: (seconds, written) => this.#setMaxStaleness(seconds, written),
      onReplicaBehind: () => this.#replica?.sync(),
      notifiesStateRead: this.#replica !== null,
      onRestored: (head) =>
        this.#replica?.restored(head, this.journal.acknowledged?.version ?? 0) ?? this.#untilFollowed(head.history),
      onSlotsRecalled: (account, want, at) => this.rates.recall(account, want, at),
      onConnected: () => {
        this.#trustedEvents = null
        this.usageLimits.connected()
      },
      forkedAfter: (announced) =>
        this.#continuity.forkedAfter(announced, this.#trustedEvents ?? this.journal.lastEvent),
      agreedEvent: () => this.#continuity.agreedEvent,
      onAgreed: (head) => this.#continuity.agree(head),
      onRecalled: (accounts) => this.usageLimits.recall(accounts),
      onFenced: () => {
        this.#noteFenced()
        options.onFenced()
      },
      onForked: () => this.usageLimits.giveUp(),
      onRetired: (failure, after) => this.#retire(failure, after),
    })
    this.mcp = {
      servers: () => this.view.mcp.servers(),
      onChange: (listener) => this.view.mcp.onChange(listener),
      report: (report) => this.#session.mcpOffers(report),
      personToken: (request) => this.#session.personToken(request),
    }
    this.batches = {
      sync: (settled) => this.#session.batches(settled),
      list: (query) => this.#session.batchObjects(query),
    }
    this.rates = new WorkerRates({
      clock: { monotonic: () => clock.monotonic(), host: this.#hostTime },
      process: options.newId(),
      past: this.journal.past,
      post: (balances) => this.#session.slots(balances),
      sleep: (milliseconds) => Bun.sleep(milliseconds),
    })
    this.#rateTimer = setInterval(() => this.rates.tick(), rateTickMs)
    this.#rateTimer.unref()
  }

  /** Loads the state with the stored bootstrap, if there is one, and connects. */
  async startFromKept(): Promise<void> {
    this.#files.started()
    await this.#continuity.carryOver()
    const kept = this.#files.kept()
    if (kept !== null) {
      this.#handle(kept)
      this.#replica?.bootstrapped(kept, this.now())
      await this.#load(kept)
    }
    this.#session.start()
    this.#noteReady()
  }

  untilReady(): Promise<void> {
    return this.#served.promise
  }

  /** Freshness, a read state or space in the outbox may have been what it waited for; the tick finds the rest. */
  #noteReady(): void {
    if (this.ready().ok) this.#served.resolve()
  }

  /** Stored for `gatehouse doctor`, which examines the directory when no process runs. */
  #noteFenced(): void {
    try {
      this.#files.fenced(this.now())
    } catch (error) {
      // The log and the exit code say it too.
      this.#options.log.warn({ error: String(error) }, 'The takeover by another process could not be stored')
    }
  }

  now(): number {
    return this.#time.now()
  }

  ready(): Readiness {
    const failure = this.#session.tokenRefused ? new Failure('runtime_token_refused') : this.#cannotServe()
    const age = this.#freshness.age()
    const staleness = Number.isFinite(age) ? { staleness_seconds: Math.round(age / 100) / 10 } : {}
    if (failure !== null) return { ok: false, reason: this.#reasonOf(failure), ...staleness }
    if (age < warnAfterMs) return { ok: true, ...staleness }
    const left = Math.max(0, Math.round((this.#staleAfterMs - age) / 1000))
    const why = this.#freshness.behind
      ? 'The copy of the state lags behind the primary'
      : 'The primary database has not been reached recently'
    return { ok: true, warning: `${why}; without it, requests are refused in ${left} s`, ...staleness }
  }

  /** The failure's message, with the control plane's refusal if that is the cause. */
  #reasonOf({ code, message }: Failure): string {
    const { refusal } = this.#session
    if (refusal === null) return message
    if (refusal.status === 403) return refusal.message
    return code === 'not_ready' || code === 'token_state_stale' ? `${message}. ${refusal.message}` : message
  }

  onRevoked(listener: (hashes: readonly string[]) => void): void {
    this.#revocationListeners.push(listener)
  }

  reportTargets(read: () => readonly TargetHealth[]): void {
    this.#readTargets = read
  }

  onEndRequests(listener: (hashes: readonly string[]) => void): void {
    this.#endRequestsListeners.push(listener)
  }

  async drain(): Promise<void> {
    this.#ended = true
    const { clock, drainTimeoutMs: milliseconds = drainTimeoutMs } = this.#options
    const end = clock.monotonic() + milliseconds
    await Promise.race([Promise.all([this.usageLimits.drain(), this.rates.drain()]), Bun.sleep(milliseconds / 2)])
    clearInterval(this.#usageTimer)
    clearInterval(this.#rateTimer)
    await this.#sumRefusals(true)
    await this.#session.stop(Math.max(0, end - clock.monotonic()))
    this.#watermark.stop()
    await this.journal.end()
    this.#keepFresh(0)
    await this.#replica?.stop()
    this.view.close()
    this.#release()
  }

  async #sumRefusals(isEnd = false): Promise<void> {
    try {
      await this.journal.sumRefusals(this.now(), isEnd)
    } catch (error) {
      this.#options.log.error({ error: String(error) }, 'Refusals of unknown callers could not be recorded')
    }
  }

  #outboxOptions(directory: string): OutboxOptions {
    const { settings, clock, log } = this.#options
    return {
      directory,
      segmentBytes: settings.outbox_segment_bytes,
      limitBytes: settings.outbox_limit_bytes,
      keepMs: settings.outbox_keep_hours * 3_600_000,
      bootId: bootId(),
      write: systemWrite,
      freeBytes: systemFreeBytes,
      clock,
      hostTime: this.#hostTime,
      log,
    }
  }

  #obstacle(): Failure | null {
    const { head, tooNew } = this.view
    if (tooNew !== null) return tooNew
    if (this.#kept === null || head === null) {
      return this.#replica?.obstacle ?? this.#loadFailure ?? new Failure('not_ready')
    }
    const acknowledged = this.journal.acknowledged
    if (!this.#current && acknowledged?.history === head.history && head.version < acknowledged.version) {
      const message = `The state is at version ${head.version}, and what was acknowledged is at ${acknowledged.version}`
      return new Failure('not_ready', { message })
    }
    this.#current = true
    return this.#freshness.age() > this.#staleAfterMs ? new Failure('token_state_stale') : null
  }

  /** The failure that every new request would get. */
  #cannotServe(): Failure | null {
    return this.#obstacle() ?? (this.journal.full ? this.journal.fullFailure() : null)
  }

  #makeStatus(): GatewayStatus {
    const gatewayId = () => this.#kept?.gateway.id ?? ''
    const organizationId = () => this.#kept?.organization_id ?? ''
    const gatewayUrl = () => this.#kept?.gateway_url ?? ''
    const baseUrl = () => this.#kept?.base_url ?? ''
    const promptKeyId = () => this.#kept?.prompt_hash_key.id ?? ''
    const promptHasher = () => this.#promptHasher.copy()
    const storedIdKey = () => this.#storedIdKey
    const obstacle = () => this.#obstacle()
    return {
      get gatewayId() {
        return gatewayId()
      },
      get organizationId() {
        return organizationId()
      },
      get gatewayUrl() {
        return gatewayUrl()
      },
      get baseUrl() {
        return baseUrl()
      },
      get storedIdKey() {
        return storedIdKey()
      },
      assertCurrent() {
        const failure = obstacle()
        if (failure !== null) throw failure
      },
      promptHash: (body) => `${promptKeyId()}:${promptHasher().update(body).digest('hex')}`,
    }
  }

  #makeUsageLimits(): WorkerUsage {
    const { clock } = this.#options
    const files = this.#files
    return new WorkerUsage({
      process: this.#process,
      crash: {
        get happened() {
          return files.crashedAfter !== null
        },
        reported: () => files.crashReported(),
      },
      clock: { now: () => this.now(), monotonic: () => clock.monotonic() },
      journal: this.journal,
      usageWaitMs: 1000 * this.#options.settings.usage_wait_seconds,
      send: (request) => {
        this.#leaseMessages += 1
        return this.#session.leases(request)
      },
      after(milliseconds, work) {
        if (milliseconds === 0) setImmediate(work)
        else setTimeout(work, milliseconds).unref()
      },
    })
  }

  #makeReplica(): WorkerReplica | null {
    const { replicator, dataDirectory, randomBytes = systemRandomBytes } = this.#options
    if (replicator === undefined) return null
    return new WorkerReplica({
      ...replicator,
      fetch: this.#options.fetch,
      clock: this.#options.clock,
      log: this.#options.log,
      directory: dataDirectory,
      randomBytes,
      session: () => this.#session,
      revocations: () => this.journal.revocations,
      head: () => this.view.head,
      onReplicaAdvanced: () => void this.#readState(),
      onInvalid: () => this.view.forget(),
    })
  }

  /** The replica has advanced, or another one is in use. */
  async #readState(): Promise<void> {
    try {
      const head = await this.view.refresh()
      this.#loadFailure = null
      this.journal.applied(head)
      this.#replica?.opened()
      this.#session.stateRead()
      this.#noteReady()
    } catch (error) {
      this.#notRead(asFailure(error), 'warn')
    }
  }

  /** The process that maintains the file detects the primary's new history too, so this waits for it. */
  async #untilFollowed(history: string): Promise<void> {
    while (!this.#ended && this.view.head?.history !== history) {
      await Bun.sleep(followPollMs)
      await this.#readState()
    }
  }

  #makeCounters(): WorkerCounters {
    const { view, journal } = this
    const watermark = this.#watermark
    const replica = this.#replica
    const freshness = this.#freshness
    const connected = () => (this.#session.connected ? 1 : 0)
    const leaseMessages = () => this.#leaseMessages
    return {
      get stateVersion() {
        return view.version
      },
      get leaseMessages() {
        return leaseMessages()
      },
      get secondsSinceFresh() {
        return freshness.age() / 1000
      },
      get connected() {
        return connected()
      },
      get outboxBytes() {
        return journal.bytes
      },
      get outboxUnacknowledged() {
        return Math.max(0, journal.lastEvent - journal.acknowledgedEvent)
      },
      get openExchanges() {
        return journal.openExchanges
      },
      get pendingRevocations() {
        return view.revocations
      },
      get tokensInMemory() {
        return view.cached
      },
      get checkpointRegressions() {
        return watermark.regressions
      },
      get replicatorRestarts() {
        return replica?.restarts ?? 0
      },
      get replicatedBytes() {
        return replica?.bytes ?? 0
      },
    }
  }

  async #bootstrapped(reply: BootstrapReply): Promise<boolean> {
    if (!this.#files.belongsTo(reply.gateway.id)) {
      // Events of the other gateway cannot be posted as this one's, so its outbox stays where it is.
      this.#retire(
        new Failure('conflict', { message: 'The runtime token belongs to another gateway than this data directory' }),
        null,
      )
      return false
    }
    this.#files.keep(reply)
    this.#handle(reply)
    this.#replica?.bootstrapped(reply, Date.parse(reply.now))
    await this.#load(reply)
    this.#noteReady()
    return true
  }

  #handle(kept: KeptBootstrap): void {
    this.#kept = kept
    this.#promptHasher = new Bun.CryptoHasher('sha256', Buffer.from(kept.prompt_hash_key.key, 'base64'))
    this.#storedIdKey = deriveKey(kept.prompt_hash_key.key, 'ids of stored objects')
    this.#setMaxStaleness(kept.max_staleness_seconds, false)
  }

  /** The reported limit must hold after a restart too. So a lower one counts once it is stored. */
  #setMaxStaleness(seconds: number, mayBeLonger: boolean): void {
    const limitMs = staleAfterMs(Math.min(this.#options.settings.max_staleness_seconds, seconds))
    if (limitMs > this.#staleAfterMs && !mayBeLonger) return
    try {
      if (limitMs < this.#staleAfterMs) this.#keepShorterStaleness(limitMs)
      this.#staleAfterMs = limitMs
    } catch (error) {
      this.#options.log.debug({ error: String(error) }, 'The staleness limit could not be stored')
    }
  }

  #keepShorterStaleness(milliseconds: number): void {
    const { wall } = this.#freshness
    if (wall !== null) this.#files.keepFreshOrThrow(wall, milliseconds)
    else if (this.#files.freshAt() !== null) this.#files.forgetFresh()
  }

  /** A state that cannot be read yet does not stop the worker: it is read again with every change and heartbeat. */
  async #load(kept: KeptBootstrap): Promise<void> {
    try {
      await this.view.load(kept.gateway.id, kept.provider_keys)
      this.#loadFailure = null
      if (this.view.head !== null) this.journal.applied(this.view.head)
    } catch (error) {
      // The first copy of a replica is being made: `/readyz` reports the progress.
      this.#notRead(asFailure(error), this.#replica?.obstacle ? 'debug' : 'warn')
    }
  }

  /** It is retried several times a second, so a repeated reason is not logged again. */
  #notRead(failure: Failure, level: 'debug' | 'warn'): void {
    const known = this.#loadFailure?.message === failure.message
    this.#loadFailure = failure
    if (!known) this.#options.log[level]({ reason: failure.message }, 'The state cannot be read yet')
  }

  #announceRevoked(hashes: readonly string[]): void {
    for (const listener of this.#revocationListeners) listener(hashes)
  }

  #keepFresh(everyMs: number): void {
    const { wall } = this.#freshness
    if (wall === null || wall - this.#freshKeptAt < everyMs) return
    this.#freshKeptAt = wall
    try {
      this.#files.keepFresh(wall, this.#staleAfterMs)
      this.#files.keepClockOffset(this.now() - this.#options.clock.now())
    } catch (error) {
      // Only a restart without a control plane needs it, and that would then serve for less time.
      this.#options.log.warn({ error: String(error) }, 'The last fresh instant could not be stored')
    }
  }

  #retire(failure: Failure, after: number | null): void {
    this.#options.log.error(
      { reason: failure.message },
      'This instance cannot continue: the next start makes a new one',
    )
    this.#continuity.retire(failure.code, after)
    this.#options.onRetired()
  }

  #reportRecovery(): void {
    const { dropped, closed, bootId: former, interrupted } = this.journal.recovered
    if (dropped !== null) this.#options.log.error(dropped, 'The outbox was damaged: its damaged end was removed')
    if (former !== null && !closed) {
      const cause = former === bootId() ? 'The previous process was killed' : 'The host went down'
      this.#options.log.warn({ interrupted }, `${cause}: its running exchanges are recorded as interrupted`)
    }
  }
}

/** A kill of the process leaves every record. After a host crash or damage it is unknown what was lost. */
const hasCrashed = ({ dropped, closed, bootId: former }: Recovered): boolean =>
  dropped !== null || (former !== null && !closed && (former !== bootId() || former === unknownBoot))

/** Without a boot's name a kill cannot be told from a crash of the host, and a crash is the safe assumption. */
const bootId = (): string => readBootId() ?? unknownBoot

/**
 * Keeps a sidecar's replica of `state` (fleet/replica/README.md): the folder that the gateway reads, the replicator
 * that syncs it, and the forwarder between that and the primary.
 *
 *  follow   a valid folder is in use: the replicator syncs it, and the gateway is notified of each sync
 *  build    there is none, its files are damaged, or the primary has another log or history: a new folder is filled
 *           while the gateway reads the former one. It is put in use once it has caught up and `admit` has found
 *           nothing in it that would restore lost rights
 *
 * A replicator that ends is started again. A silent one, without a message or a call to the primary, is killed first.
 * Nothing here waits for the primary: without it the folder in use serves, and freshness limits for how long.
 *
 * Longer than most: folder, process and sync are one state.
 */
import { asFailure } from '../../failure.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log/log.ts'
import type { Fetch } from '../../providers/provider.ts'
import type { Head } from '../../store/propagation.ts'
import type { ReplicatorReport } from '../protocol/replicator-message.ts'
import { type Forwarder, type Primary, startForwarder } from './forwarder.ts'
import { ReplicaFolders } from './replica-folder.ts'
import type { ReplicatorProcess, StartReplicator } from './replicator-process.ts'

const tickMs = 250
/**
 * The interval of syncs without change notices or after a failed sync, and the longer one otherwise, as a precaution.
 */
const blindSyncMs = 1000
const sureSyncMs = 15_000
const silenceMs = 10_000
const standstillMs = 15_000
const firstDelayMs = 100
const longestDelayMs = 5000
/** After this many failed syncs in a row, for other reasons than an unreachable primary, the copy is made anew. */
const failuresBeforeAnew = 5
const absence = /Handshake|Timeout|Unavailable|transport|502|503/i

export interface BuiltState {
  /** The new folder's database and its head. */
  file: string
  head: Head
  /** The database that is read now; null if there is none. */
  former: string | null
}

export interface ReplicaOptions {
  /** The directory of the folders. */
  directory: string
  /** Where the native addon is placed. */
  dataDirectory: string
  /** The command line of the replicator. */
  command: readonly string[]
  start: StartReplicator
  fetch: Fetch
  clock: Clock
  log: Log
  randomBytes(size: number): Uint8Array
  /**
   * Whether a folder that has caught up may be read from now on. If it rejects or returns false, it is called again.
   */
  admit(built: BuiltState): Promise<boolean>
  /** The folder that is read has changed, or another one is in use. */
  onReplicaAdvanced(): void
  /** What is read cannot be trusted and must not be used. */
  onInvalid(): void
  /** The primary refuses the credential. */
  onRefused(): void
  /** Whether the control plane currently sends change notices. */
  streamConnected(): boolean
}

export class Replica {
  readonly #options: ReplicaOptions
  readonly #folders: ReplicaFolders
  readonly #forwarder: Forwarder
  readonly #timer: Timer
  #primary: (Primary & { until: number }) | null = null
  #process: ReplicatorProcess | null = null
  /** The folder that the replicator works on. */
  #target: number | null = null
  /** Whether the folder in use must no longer be synced. */
  #renew = false
  #asked = false
  #askedAt = 0
  #again = false
  #syncedAt = Number.NEGATIVE_INFINITY
  #heardAt = 0
  #startAt = 0
  #delay = firstDelayMs
  #failures = 0
  #admitting = false
  #stopped = false
  #reason: string | null = null
  #naming = Promise.withResolvers<void>()
  /** Starts of the replicator that were not the first. */
  restarts = 0

  constructor(options: ReplicaOptions) {
    this.#options = options
    this.#folders = new ReplicaFolders(options.directory)
    this.#forwarder = startForwarder({
      fetch: options.fetch,
      clock: options.clock,
      randomBytes: options.randomBytes,
      primary: () => (this.#primary !== null && options.clock.monotonic() < this.#primary.until ? this.#primary : null),
      onHello: (log) => this.#greeted(log),
      onRefused: () => options.onRefused(),
    })
    this.#discardDamaged()
    this.#folders.prune([this.#folders.current])
    this.#timer = setInterval(() => this.#tick(), tickMs)
  }

  /** The database that gateways open. */
  get file(): string {
    return this.#folders.file
  }

  /** Why no folder is in use yet; null if one is. */
  get waitingFor(): string | null {
    if (this.#folders.current !== null) return null
    if (this.#primary === null) return 'The control plane has not said yet where the state is'
    const mebibytes = (this.#forwarder.bytes / 1024 / 1024).toFixed(1)
    const trouble = this.#reason === null ? '' : `; last: ${this.#reason}`
    return `The state is being copied from the primary: ${mebibytes} MiB so far${trouble}`
  }

  /** Bytes that came from the primary since the start. */
  get bytes(): number {
    return this.#forwarder.bytes
  }

  /** Whether the folder in use is synced, rather than one that will replace it. */
  get follows(): boolean {
    return this.#target !== null && this.#target === this.#folders.current
  }

  /** Whether a new folder will replace the one in use. */
  get renewing(): boolean {
    return this.#renew
  }

  /** Resolves when a new folder is named. */
  named(): Promise<void> {
    return this.#naming.promise
  }

  /** Sets the primary, and the credential that may read it for this many milliseconds. */
  follow(primary: Primary, milliseconds: number): void {
    this.#primary = { ...primary, until: this.#options.clock.monotonic() + milliseconds }
    // Nothing can be served before the first copy.
    if (this.#folders.current === null && this.#process === null && !this.#stopped) this.#tick()
  }

  /** The primary has changed. */
  sync(): void {
    if (this.#asked) this.#again = true
    else this.#ask()
  }

  /** Fills a new folder. With `distrusted` the one in use must not be read meanwhile. */
  anew(reason: string, distrusted: boolean): void {
    if (this.#stopped) return
    this.#options.log.warn({ reason }, 'A new replica of the state is made')
    if (distrusted) {
      this.#folders.unname()
      this.#options.onInvalid()
    }
    this.#target = null
    this.#renew = true
    this.#end()
    this.#startLater()
  }

  /** The gateway has opened the folder in use: others are no longer read. */
  opened(): void {
    this.#folders.prune([this.#folders.current, this.#target])
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearInterval(this.#timer)
    this.#end()
    await this.#forwarder.stop()
  }

  #tick(): void {
    const now = this.#options.clock.monotonic()
    if (this.#process === null) {
      if (this.#primary !== null && now >= this.#startAt) this.#start()
      return
    }
    const heard = Math.max(this.#heardAt, this.#forwarder.activeAt)
    // A process may report life and still be in a sync that never ends.
    const moved = this.#asked ? Math.max(this.#askedAt, this.#forwarder.activeAt) : now
    if (now - heard > silenceMs || now - moved > standstillMs) {
      this.#options.log.error(
        { silent_ms: Math.round(now - heard), still_ms: Math.round(now - moved) },
        'The replicator hangs: it is killed',
      )
      this.#end()
      this.#ended('silence')
    } else if (
      now - this.#syncedAt >=
      (this.#options.streamConnected() && this.#isCurrent ? sureSyncMs : blindSyncMs)
    ) {
      this.sync()
    }
  }

  get #isCurrent(): boolean {
    return this.follows && this.#reason === null
  }

  #start(): void {
    try {
      this.#discardDamaged()
      this.#target = this.#folderToWorkOn()
      this.#launch(this.#target)
    } catch (error) {
      this.#reason = String(error)
      this.#startLater()
      this.#options.log.warn({ reason: this.#reason }, 'The replicator could not be started')
    }
  }

  /** The folder in use, or an unfinished new one, or another new one. */
  #folderToWorkOn(): number {
    const folders = this.#folders
    if (folders.current !== null && !this.#renew) return folders.current
    if (this.#target !== null && this.#target !== folders.current && folders.faultOf(this.#target) === null) {
      return this.#target
    }
    folders.prune([folders.current])
    return folders.create()
  }

  #launch(target: number): void {
    const { start, command, log, clock, dataDirectory } = this.#options
    this.#heardAt = clock.monotonic()
    this.#asked = true
    this.#askedAt = this.#heardAt
    const launched = start({
      command,
      log,
      onReport: (report) => {
        if (this.#process === launched) this.#reported(report)
      },
      onEnd: (exit) => {
        if (this.#process !== launched) return
        this.#process = null
        this.#ended(exit)
      },
    })
    this.#process = launched
    launched.send({
      kind: 'open',
      file: this.#folders.fileOf(target),
      url: this.#forwarder.url,
      secret: this.#forwarder.newSecret(),
      dataDirectory,
      check: this.#folders.faultOf(target) === null,
    })
  }

  #ask(): void {
    if (this.#process === null) return
    if (this.follows && this.#fault() !== null) return
    this.#asked = true
    this.#askedAt = this.#options.clock.monotonic()
    this.#again = false
    this.#process.send({ kind: 'sync' })
  }

  #reported(report: ReplicatorReport): void {
    this.#heardAt = this.#options.clock.monotonic()
    if (report.kind === 'alive') return
    this.#asked = false
    this.#syncedAt = this.#heardAt
    if (report.kind === 'failed') this.#failed(report.reason, report.damaged)
    else this.#synced(report.head)
    if (this.#again) this.#ask()
  }

  #synced(head: Head): void {
    this.#reason = null
    this.#failures = 0
    this.#delay = firstDelayMs
    if (this.follows) this.#options.onReplicaAdvanced()
    else void this.#admit(head)
  }

  #failed(reason: string, damaged: boolean): void {
    this.#reason = reason
    this.#options.log.debug({ reason }, 'A sync with the primary failed')
    if (!absence.test(reason)) this.#failures++
    if (!damaged && this.#failures < failuresBeforeAnew) return
    this.#failures = 0
    this.anew(reason, damaged && this.follows)
  }

  async #admit(head: Head): Promise<void> {
    const target = this.#target
    if (this.#admitting || target === null) return
    this.#admitting = true
    const { current } = this.#folders
    try {
      const former = current === null ? null : this.#folders.fileOf(current)
      const admitted = await this.#options.admit({ file: this.#folders.fileOf(target), head, former })
      if (!admitted || this.#target !== target) return
      this.#folders.name(target)
      this.#renew = false
      this.#naming.resolve()
      this.#naming = Promise.withResolvers()
      this.#options.log.info({ version: head.version, bytes: this.bytes }, 'A new copy of the state is in use')
      this.#options.onReplicaAdvanced()
    } catch (error) {
      this.#reason = asFailure(error).message
      this.#options.log.warn({ reason: this.#reason }, 'A new copy of the state is not in use yet')
    } finally {
      this.#admitting = false
    }
  }

  /** A folder in use whose files do not fit together must not be opened. */
  #discardDamaged(): void {
    const { current } = this.#folders
    const fault = current === null ? null : this.#folders.faultOf(current)
    if (fault === null) return
    this.#options.log.error({ fault }, 'The replica of the state is damaged: a new one is made')
    this.#folders.unname()
  }

  /** Starts over if files of the folder in use have disappeared. */
  #fault(): string | null {
    const { current } = this.#folders
    const fault = current === null ? null : this.#folders.faultOf(current)
    if (fault === null) return null
    this.#folders.unname()
    this.anew(fault, false)
    return fault
  }

  #greeted(log: string): boolean {
    const target = this.#target
    if (target === null) return false
    const followed = this.#folders.logOf(target)
    if (followed === null) this.#folders.follow(target, log)
    else if (followed !== log) {
      this.anew('The primary has another log', false)
      return false
    }
    return true
  }

  #ended(exit: string): void {
    if (this.#stopped) return
    this.#options.log.warn({ exit, restart_in_ms: this.#delay }, 'The replicator ended; it is started again')
    this.restarts++
    this.#startLater()
  }

  #startLater(): void {
    this.#startAt = this.#options.clock.monotonic() + this.#delay
    this.#delay = Math.min(2 * this.#delay, longestDelayMs)
  }

  #end(): void {
    this.#process?.kill()
    this.#process = null
    this.#asked = false
  }
}

/**
 * The state of a worker on a sidecar (fleet/replica/replica.ts). Renews the read credential after half of its life.
 * Reads a copy of the state only if it has reached the known head of the primary, and after all revocations that it
 * lacks were reported (fleet/coordinator/lost-revocations.ts).
 */
import { join } from 'node:path'
import { asFailure, Failure } from '../../failure.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log/log.ts'
import type { Fetch } from '../../providers/provider.ts'
import type { Head } from '../../store/propagation.ts'
import { findTokensToRevokeAgain, type RevocationEntry } from '../coordinator/lost-revocations.ts'
import type { RevocationRecord } from '../outbox/record.ts'
import type { BootstrapReply } from '../protocol/wire.ts'
import { type BuiltState, Replica } from '../replica/replica.ts'
import { ReplicaFolders } from '../replica/replica-folder.ts'
import { type StartReplicator, startReplicator } from '../replica/replicator-process.ts'
import type { KeptBootstrap } from './agent-files.ts'
import { isPrivate } from './control-client.ts'

/** How often a credential without an expiry is requested again. */
const unboundedMs = 10 * 60_000
const retryMs = 5000

export interface ReplicatorCommand {
  /** The command line that starts the replicator. */
  command: readonly string[]
  /** Where the native addon is placed. */
  dataDirectory: string
  start?: StartReplicator
}

/** The worker's connection to its control plane, as far as a replica needs it. */
export interface ReplicaSession {
  readonly connected: boolean
  readonly primaryHead: Head | null
  credential(): Promise<{ state: BootstrapReply['state']; now: string }>
  /** Resolves to the primary's head once it refuses them again. */
  reportRevocations(history: string, revocations: readonly RevocationEntry[]): Promise<Head>
}

export interface WorkerReplicaOptions extends ReplicatorCommand {
  /** The worker's data directory. */
  directory: string
  fetch: Fetch
  clock: Clock
  log: Log
  randomBytes(size: number): Uint8Array
  session(): ReplicaSession
  /** The revocations in the worker's outbox. */
  revocations(): readonly RevocationRecord[]
  /** The head of the state that is read now. */
  head(): Head | null
  onReplicaAdvanced(): void
  onInvalid(): void
}

const replicaDirectory = (gatewayDirectory: string): string => join(gatewayDirectory, 'replica')

/** The database of a gateway's replica, shared by its workers. */
export const replicaFile = (gatewayDirectory: string): string =>
  new ReplicaFolders(replicaDirectory(gatewayDirectory)).file

export class WorkerReplica {
  readonly #options: WorkerReplicaOptions
  readonly #replica: Replica
  readonly #timer: Timer
  #renewAt = Number.POSITIVE_INFINITY
  #renewing = false
  /** The head of the primary from the last bootstrap. */
  #bootstrapHead: Head | null = null
  #fault: Failure | null = null
  /** Hashes that were reported to the primary as revoked, and its head after that. */
  readonly #reported = new Set<string>()
  #reportedHead: Head | null = null

  constructor(options: WorkerReplicaOptions) {
    this.#options = options
    this.#replica = new Replica({
      ...options,
      directory: replicaDirectory(options.directory),
      start: options.start ?? startReplicator,
      admit: (built) => this.#admit(built),
      onRefused: () => this.#renewSoon(),
      streamConnected: () => options.session().connected,
    })
    this.#timer = setInterval(() => this.#renewWhenDue(), 1000)
    this.#timer.unref()
  }

  get file(): string {
    return this.#replica.file
  }

  get restarts(): number {
    return this.#replica.restarts
  }

  get bytes(): number {
    return this.#replica.bytes
  }

  /** Why there is no state to read yet. */
  get obstacle(): Failure | null {
    const message = this.#fault?.message ?? this.#replica.waitingFor
    return message === null ? null : new Failure('not_ready', { message })
  }

  /** Applies a bootstrap reply, new or stored before the last restart. */
  bootstrapped({ state, head }: KeptBootstrap, now: number): void {
    this.#bootstrapHead = head
    this.#follow(state, now)
  }

  sync(): void {
    this.#replica.sync()
  }

  /** The state has been opened for reading. */
  opened(): void {
    this.#replica.opened()
  }

  /** The state that is read is damaged. */
  damaged(reason: string): void {
    if (!this.#replica.renewing) this.#replica.anew(reason, true)
  }

  /** Resolves when the replica in use has the primary's present history; `head` is its head. */
  async restored(head: Head, acknowledged: number): Promise<void> {
    const read = this.#options.head()
    const replaced = read?.history === head.history && read.version < acknowledged && read.version <= head.version
    if (replaced || (read?.version === head.version && read.nonce === head.nonce)) return
    const named = this.#replica.named()
    if (!this.#replica.renewing) this.#replica.anew('The primary was restored or replaced', false)
    await named
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#replica.stop()
  }

  #follow(state: BootstrapReply['state'], now: number): void {
    this.#fault = faultOf(state)
    if (state.kind === 'file' || this.#fault !== null) return
    const lifetime = state.expires_at === null ? Number.POSITIVE_INFINITY : Date.parse(state.expires_at) - now
    this.#replica.follow({ url: state.url, token: state.token }, lifetime)
    this.#renewAt = this.#options.clock.monotonic() + Math.min(lifetime, unboundedMs) / 2
  }

  #renewSoon(): void {
    this.#renewAt = Math.min(this.#renewAt, this.#options.clock.monotonic() + retryMs)
  }

  #renewWhenDue(): void {
    if (this.#renewing || this.#options.clock.monotonic() < this.#renewAt || !this.#options.session().connected) return
    this.#renewing = true
    this.#options
      .session()
      .credential()
      .then(({ state, now }) => this.#follow(state, Date.parse(now)))
      .catch((error: unknown) => {
        this.#options.log.warn({ reason: asFailure(error).message }, 'The read credential could not be renewed yet')
        this.#renewAt = this.#options.clock.monotonic() + retryMs
      })
      .finally(() => {
        this.#renewing = false
      })
  }

  async #admit({ file, head, former }: BuiltState): Promise<boolean> {
    const { session, revocations, log } = this.#options
    const primary = session().primaryHead ?? this.#bootstrapHead
    if (primary === null) return false
    if (head.history !== primary.history) {
      throw new Failure('state_replaced', {
        message: 'The primary has another state than the control plane',
      })
    }
    const needed = this.#reportedHead?.history === head.history ? this.#reportedHead.version : 0
    if (head.version < Math.max(primary.version, needed)) return false
    let complete = true
    for (const { history, revocations: found } of await findTokensToRevokeAgain(file, former, revocations())) {
      const unreported = found.filter(({ hash }) => !this.#reported.has(hash))
      if (unreported.length === 0) continue
      log.warn({ tokens: unreported.length }, 'The primary lost these revocations: they are reported to it')
      this.#reportedHead = await session().reportRevocations(history, unreported)
      for (const { hash } of unreported) this.#reported.add(hash)
      complete = false
    }
    // The reported revocations must be in the copy before any decision uses it.
    if (!complete) this.#replica.sync()
    return complete
  }
}

function faultOf(state: BootstrapReply['state']): Failure | null {
  if (state.kind === 'file') {
    return new Failure('not_ready', {
      message:
        'The control plane keeps its state in a file of its own host: it needs a libSQL primary for this gateway',
    })
  }
  if (isPrivate(state.url)) return null
  return new Failure('not_ready', { message: 'The primary must be reached over https, unless it is on this host' })
}

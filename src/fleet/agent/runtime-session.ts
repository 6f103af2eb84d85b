/**
 * The session credential of an instance: made by bootstrap when first needed, and renewed after two thirds of its
 * life.
 */
import { asFailure, Failure } from '../../failure.ts'
import type { Clock } from '../../lib/clock.ts'
import { version } from '../../version.ts'
import type { BootstrapReply } from '../protocol/wire.ts'
import type { ControlClient } from './control-client.ts'

export interface RuntimeSessionOptions {
  client: ControlClient
  runtimeToken: string
  instanceId: string
  clock: Clock
  /** Applies keys and limits. Returns false if this instance belongs to another gateway. */
  onBootstrap(reply: BootstrapReply): Promise<boolean>
  /** The control plane has started to refuse the runtime token itself. */
  onRefused(): void
}

export class RuntimeSession {
  readonly #options: RuntimeSessionOptions
  #token: string | null = null
  #renewAt = 0
  #bootstrapping: Promise<void> | null = null
  #tokenRefused = false
  #refusal: Failure | null = null

  constructor(options: RuntimeSessionOptions) {
    this.#options = options
  }

  /** The present credential, for calls that should not wait for a bootstrap. */
  get token(): string | null {
    return this.#token
  }

  /** Whether the control plane refused the runtime token at the last attempt. */
  get tokenRefused(): boolean {
    return this.#tokenRefused
  }

  /** Why the last bootstrap failed; null if it succeeded. */
  get refusal(): Failure | null {
    return this.#refusal
  }

  /** Whether it should be renewed although it is still valid. */
  get due(): boolean {
    return this.#token !== null && this.#options.clock.monotonic() >= this.#renewAt
  }

  /** The credential, after a bootstrap if there is none or it is due. Throws the error of the bootstrap. */
  async ensure(): Promise<string> {
    if (this.#token === null || this.due) {
      this.#bootstrapping ??= this.#bootstrap().finally(() => {
        this.#bootstrapping = null
      })
      await this.#bootstrapping
    }
    if (this.#token === null) throw new Failure('session_expired')
    return this.#token
  }

  /** The control plane no longer accepts the credential. */
  refused(): void {
    this.#token = null
  }

  #tokenIsRefused(): void {
    if (!this.#tokenRefused) this.#options.onRefused()
    this.#tokenRefused = true
  }

  /** A new bootstrap would bring something. */
  renewSoon(): void {
    this.#renewAt = this.#options.clock.monotonic()
  }

  async #bootstrap(): Promise<void> {
    const { client, runtimeToken, instanceId, clock } = this.#options
    const reply = await client
      .bootstrap(runtimeToken, { instance_id: instanceId, version, workers: 1 })
      .catch((error: unknown) => {
        const failure = asFailure(error)
        if (failure.status === 401) this.#tokenIsRefused()
        this.#refusal = failure.status === 403 || failure.code === 'dependency_unavailable' ? failure : null
        throw error
      })
    this.#tokenRefused = false
    this.#refusal = null
    if (!(await this.#options.onBootstrap(reply))) throw new Failure('conflict')
    const lifetime = Date.parse(reply.session.expires_at) - Date.parse(reply.now)
    this.#token = reply.session.token
    this.#renewAt = clock.monotonic() + (lifetime * 2) / 3
  }
}

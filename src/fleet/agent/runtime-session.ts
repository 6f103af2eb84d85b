/** The session credential of an instance: bootstrapped when it is first needed, renewed after two thirds of its life. */
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
  /** Takes in keys and limits; false where this instance belongs to another gateway. */
  onBootstrap(reply: BootstrapReply): Promise<boolean>
  /** The control plane has begun to refuse the runtime token itself. */
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

  /** The credential as it is, for calls that are not worth waiting for a bootstrap. */
  get token(): string | null {
    return this.#token
  }

  /** Whether the control plane refused the runtime token when it was last shown. */
  get tokenRefused(): boolean {
    return this.#tokenRefused
  }

  /** Why the control plane let this gateway not in when it was last asked, or could not be; null where it did. */
  get refusal(): Failure | null {
    return this.#refusal
  }

  /** Whether it should be renewed, though it still serves. */
  get due(): boolean {
    return this.#token !== null && this.#options.clock.monotonic() >= this.#renewAt
  }

  /** The credential, after a bootstrap where there is none or it is due. Throws what the bootstrap ended with. */
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

  /** The control plane no longer takes it. */
  refused(): void {
    this.#token = null
  }

  #tokenIsRefused(): void {
    if (!this.#tokenRefused) this.#options.onRefused()
    this.#tokenRefused = true
  }

  /** Bootstrap has something new to give. */
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

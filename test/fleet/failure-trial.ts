/** A fleet under load on all its sidecars while something fails, and what is counted afterwards. */
import { createdToken, revokedToken } from '../support/answers.ts'
import { api, createToken, expectAnswer, revoke } from '../support/client.ts'
import { eventually, until } from '../support/eventually.ts'
import type { ControlPlane } from './control-plane.ts'
import { type FleetUnderTest, startFleet } from './fleet.ts'
import type { FleetGateway, FleetGatewayOptions } from './gateway.ts'
import { type Counted, count } from './invariants.ts'
import { type Load, startLoad } from './load.ts'

const staleSeconds = 6
const limit = 10
const patience = { withinMs: 30_000 }

type Made = Pick<Awaited<ReturnType<typeof createToken>>, 'id' | 'token_value'>

export class FailureTrial implements AsyncDisposable {
  readonly fleet: FleetUnderTest
  readonly killSeconds: number
  #load: Load | null = null
  #limited = ''
  /** Tokens and the instants after which no gateway may accept them. */
  readonly #ended = new Map<string, number>()
  readonly #cleanups: (() => PromiseLike<void> | void)[] = []

  /** `killSeconds`: for how long sidecars are killed at random where that is the failure. */
  static async start({ sidecars, killSeconds }: { sidecars: number; killSeconds: number }): Promise<FailureTrial> {
    const environment = { SERVICE_MAX_STALENESS_SECONDS: String(staleSeconds) }
    return new FailureTrial(await startFleet({ gateways: sidecars, environment }), killSeconds)
  }

  private constructor(fleet: FleetUnderTest, killSeconds: number) {
    this.fleet = fleet
    this.killSeconds = killSeconds
  }

  get load(): Load {
    if (this.#load === null) throw new Error('The load has not begun')
    return this.#load
  }

  /** Has something fail under load, counts what came of it, and leaves the fleet as it was. */
  async run(fail: (trial: FailureTrial) => Promise<void>): Promise<Counted> {
    this.#ended.clear()
    this.#load = startLoad(this.fleet.gateways, [])
    try {
      this.#limited = (await this.newToken({ max_requests: limit })).token_value
      await this.newToken()
      await fail(this)
      return await this.#count()
    } finally {
      await this.load.stop()
      for (const clean of this.#cleanups.splice(0).toReversed()) await clean()
    }
  }

  /** What is done when the case is over and counted, the last first. */
  after(clean: () => PromiseLike<void> | void): void {
    this.#cleanups.push(clean)
  }

  /** One more sidecar under load for this case. */
  async add(plane: ControlPlane, options: Partial<FleetGatewayOptions>): Promise<FleetGateway> {
    const gateway = await this.fleet.add(plane, options)
    this.after(() => this.fleet.remove(gateway))
    this.load.add(gateway)
    return gateway
  }

  async newToken(fields: object = {}): Promise<Made> {
    const token = await eventually(() => createToken(this.fleet.planes[0], fields), patience)
    this.load.use(token.token_value)
    return token
  }

  async expiringToken(expires: Date): Promise<Made> {
    const body = { name: 'short', purpose: 'general', expires_at: expires.toISOString() }
    const token = expectAnswer(await api(this.fleet.planes[0], '/v1/tokens', { body }), 201, createdToken)
    this.load.use(token.token_value)
    this.#ended.set(token.token_value, expires.getTime())
    return token
  }

  accepted({ token_value: token }: Made): Promise<void> {
    const isAccepted = () => this.load.answers.some((answer) => answer.token === token && answer.status === 200)
    return until('it is accepted', isAccepted, patience)
  }

  /** Revokes until a control plane has said by when it holds. */
  async end(plane: ControlPlane, { id, token_value: secret }: Made) {
    const asked = async () => expectAnswer(await revoke(plane, id), 200, revokedToken)
    const { propagation } = await eventually(asked, { ...patience, everyMs: 200 })
    this.#ended.set(secret, Date.parse(propagation.effective_by))
    return propagation
  }

  /** A token that gateways have accepted for a while and that is then revoked. */
  async endedToken(plane: ControlPlane = this.fleet.planes[1]) {
    const token = await this.newToken()
    await this.accepted(token)
    return await this.end(plane, token)
  }

  /** Lets the load go on for a moment after all, then counts. */
  async #count(): Promise<Counted> {
    await this.endedToken()
    await Bun.sleep(1000)
    await this.load.stop()
    return await count(this.fleet, {
      answers: this.load.answers,
      ended: this.#ended,
      limits: new Map([[this.#limited, limit]]),
      gateways: this.fleet.gateways,
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.fleet[Symbol.asyncDispose]()
  }
}

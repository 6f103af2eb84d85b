/**
 * Callers that present a JWT of another issuer (workloads/README.md). A JWT is checked once, before its request runs,
 * because its signature is checked off the stages; the result is kept for its later requests. Afterwards such a caller
 * is a token like any other: `gateway/admission/authenticate.ts` looks the acting token up by its hash, and checks
 * after every wait that the workload identity still stands.
 */
import { LRUCache } from 'lru-cache'
import { Failure } from '../failure.ts'
import { bearerSecret, hashSecret } from '../identity/secret.ts'
import type { Clock } from '../lib/clock.ts'
import {
  checkJwt,
  looksLikeJwt,
  requireStanding,
  type WorkloadCaller,
  type WorkloadIdentity,
} from './workload-identity.ts'

const keptCallers = 20_000
const keptRefusals = 2000
/** A JWT that was refused is checked again after this time: new keys may have come. */
const refusalMilliseconds = 2000

interface Refusal {
  readonly failure: Failure
  /** Monotonic milliseconds. */
  readonly until: number
  /** The identities that refused it: a change of one of them ends it. */
  readonly identities: ReadonlyMap<string, WorkloadIdentity>
}

/** What it needs of a gateway. */
interface Deciding {
  readonly worker: { readonly view: { readonly workloadIdentities: ReadonlyMap<string, WorkloadIdentity> } }
  readonly clock: Clock
}

export class JwtCallers {
  readonly #callers = new LRUCache<string, WorkloadCaller>({ max: keptCallers })
  readonly #refusals = new LRUCache<string, Refusal>({ max: keptRefusals })

  /**
   * Checks the JWT of a request that was not checked before; undefined when there is nothing to check. The result is
   * for `callerOf`. It rejects only when a state cannot be read.
   */
  admit(request: Request, gateway: Deciding): Promise<void> | undefined {
    if (gateway.worker.view.workloadIdentities.size === 0) return undefined
    const secret = bearerSecret(request.headers.get('authorization'))
    if (secret === null || !looksLikeJwt(secret)) return undefined
    const hash = hashSecret(secret)
    return this.#known(hash, gateway) ? undefined : this.#check(hash, secret, gateway)
  }

  /** The caller of a JWT that `admit` has checked; null for another secret. Throws what refuses it. */
  callerOf(secret: string, gateway: Deciding): WorkloadCaller | null {
    const { view } = gateway.worker
    if (!looksLikeJwt(secret) || view.workloadIdentities.size === 0) return null
    const hash = hashSecret(secret)
    const caller = this.#callers.get(hash)
    if (caller !== undefined) {
      requireCaller(caller, gateway)
      return caller
    }
    throw this.#refusals.get(hash)?.failure ?? new Failure('invalid_api_token')
  }

  #known(hash: string, { worker, clock }: Deciding): boolean {
    const { workloadIdentities } = worker.view
    const caller = this.#callers.get(hash)
    // Of a changed identity the keys, the audience or the condition may be other ones.
    if (caller !== undefined) return workloadIdentities.get(caller.identity.id) === caller.identity
    const refusal = this.#refusals.get(hash)
    return refusal !== undefined && refusal.identities === workloadIdentities && clock.monotonic() < refusal.until
  }

  async #check(hash: string, jwt: string, { worker, clock }: Deciding): Promise<void> {
    const { workloadIdentities: identities } = worker.view
    try {
      const caller = await checkJwt(jwt, [...identities.values()], clock.now())
      this.#callers.set(hash, caller)
      this.#refusals.delete(hash)
    } catch (thrown) {
      if (!(thrown instanceof Failure)) throw thrown
      this.#callers.delete(hash)
      this.#refusals.set(hash, { failure: thrown, until: clock.monotonic() + refusalMilliseconds, identities })
    }
  }
}

/** Throws when the identity of a checked caller is gone or changed, or its JWT has ended or was revoked. */
export function requireCaller(caller: WorkloadCaller, { worker, clock }: Deciding): void {
  const identity = worker.view.workloadIdentities.get(caller.identity.id)
  if (identity === undefined) {
    throw new Failure('invalid_api_token', { message: 'The workload identity of this JWT was removed or disabled' })
  }
  requireStanding(caller, identity, clock.now())
}

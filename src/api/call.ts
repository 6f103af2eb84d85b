/** What a running request carries between the hooks that answer it. Elysia's context goes to no function. */
import { anonymous, type Principal } from '../identity/principal.ts'
import type { Log } from '../lib/log/log.ts'
import type { CalledRoute, Refusal } from './access.ts'
import type { AnswerStore, Claim } from './answer-store.ts'

export interface Call {
  readonly requestId: string
  /** By the monotonic clock. */
  readonly startedAt: number
  /** The route that the request matched; null before that, and if none matched. */
  route: CalledRoute | null
  principal: Principal
  /** Its answer has the headers of every answer, and is counted. */
  finished: boolean
  /** Pages of any origin may read the answer. */
  forAnyOrigin: boolean
  /** A `permission_denied` that the handler throws has an event already. */
  recordsRefusals: boolean
  /** The bytes of the body, once they are read. */
  bytes: Uint8Array
  /** Held while the handler of a request with an `Idempotency-Key` runs. */
  claim: Claim | null
  /** The id of the record whose secret the reply shows. */
  secretOf: string | undefined
}

/** What the hooks of the conventions need of the application that serves the routes. */
export interface Api {
  /** Throws `missing_api_key`, `invalid_api_token`, `tokens.expired`; a database's failure passes through. */
  authenticate(request: Request): Promise<Principal>
  answers: AnswerStore
  log: Log
  /** Called when a caller lacks the permission for a change, or asks for more than the permission gives. */
  refused?: ((refusal: Refusal) => Promise<void>) | undefined
  calls: Calls
}

/** The calls that run, by their requests. */
export class Calls {
  readonly #calls = new WeakMap<Request, Call>()

  begin(request: Request, requestId: string, startedAt: number): Call {
    const call: Call = {
      requestId,
      startedAt,
      route: null,
      principal: anonymous,
      finished: false,
      forAnyOrigin: false,
      recordsRefusals: false,
      bytes: new Uint8Array(),
      claim: null,
      secretOf: undefined,
    }
    this.#calls.set(request, call)
    return call
  }

  of(request: Request): Call {
    const call = this.#calls.get(request)
    if (call === undefined) throw new Error('The request did not come through the fetch of the application')
    return call
  }
}

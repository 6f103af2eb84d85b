/**
 * How a session with a provider begins: its own responses are turned off before its client hears of it, because a
 * response that nobody asked for could not be admitted.
 */
import { Failure } from '../../failure.ts'
import { isObject, type JsonObject, parseObject, textOf } from '../../languages/reading/json-value.ts'
import { updateOfSetup } from '../../languages/realtime/session-settings.ts'
import type { Exchange } from '../exchange.ts'
import { maskKeyInText } from '../upstream/mask-provider-key.ts'

/** What follows from an event: an update to send, the session's beginning, its end, or nothing. */
type SetupStep = { readonly update: object } | Begun | Failure | null

interface Begun {
  /** The provider's first event, for the client. */
  readonly created: string
  readonly answersTurns: boolean
}

export class Setup {
  readonly #exchange: Exchange
  #created: string | null = null

  constructor(exchange: Exchange) {
    this.#exchange = exchange
  }

  take({ type, session, error }: JsonObject, text: string): SetupStep {
    if (type === 'error') {
      const said = isObject(error) ? textOf(error.message) : null
      return refused(`The provider refused: ${maskKeyInText(this.#exchange, said ?? 'it gave no reason')}`)
    }
    if ((type !== 'session.created' && type !== 'session.updated') || !isObject(session)) return null
    this.#created ??= text
    const update = updateOfSetup(session)
    if (update !== null && type === 'session.created') {
      return { update: { type: 'session.update', event_id: 'event_gatehouse_setup', session: update } }
    }
    if (update !== null) return refused('The provider answers turns of speech although it was told not to')
    const created = parseObject(this.#created)?.session
    return { created: this.#created, answersTurns: isObject(created) && updateOfSetup(created) !== null }
  }
}

const refused = (message: string): Failure => new Failure('upstream_provider_error', { message })

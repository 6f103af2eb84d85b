/**
 * What a provider sends. Events of a response go to the response, whose relay inspects them, and so do the items that
 * it adds to the conversation. Events that no policy reads pass unchanged: they hold no text of an answer. While
 * policies inspect answers, an event that the language does not have is dropped.
 */
import { estimateTokens } from '../../languages/dialect.ts'
import { isGiven, isObject, type JsonObject, objectsOf, textOf } from '../../languages/reading/json-value.ts'
import { textLength } from '../../languages/reading/texts/texts.ts'
import { isItemEvent } from '../../languages/realtime/events.ts'
import { withResponses } from '../../languages/realtime/session-settings.ts'
import { maskKeyInText } from '../upstream/mask-provider-key.ts'
import type { Guards } from './admission.ts'
import type { ClientEvents } from './client-events.ts'
import type { LiveSession } from './live-session.ts'

/** Events without words of anyone, or with those of the client. */
const harmless =
  /^(?:input_audio_buffer\.\w+|output_audio_buffer\.\w+|rate_limits\.updated|conversation\.item\.(?:deleted|truncated|retrieved)|conversation\.created)$/

const uninspected = 'The provider reported an error; its words are left out while a policy inspects answers'

export class ProviderEvents {
  readonly #session: LiveSession
  readonly #client: ClientEvents

  constructor(session: LiveSession, client: ClientEvents) {
    this.#session = session
    this.#client = client
  }

  take(event: JsonObject, text: string): void {
    const session = this.#session
    const type = textOf(event.type) ?? ''
    if (type === 'response.created') {
      this.#begin(event, text)
      return
    }
    const responseId = textOf(event.response_id) ?? (isObject(event.response) ? textOf(event.response.id) : null)
    if (responseId !== null) {
      this.#ofResponse(responseId, type, event, text)
      return
    }
    if (type === 'session.updated' || type === 'session.created') {
      this.#settings(event, text)
      return
    }
    const guards = session.guards()
    if (guards === null) return
    if (type === 'error') {
      this.#error(event, text, guards)
      return
    }
    if (isItemEvent(type)) {
      this.#item(event, text, guards)
      return
    }
    if (type.startsWith('conversation.item.input_audio_transcription.')) {
      this.#transcript(event, text, guards)
      return
    }
    if (type === 'input_audio_buffer.committed') this.#committed(event, guards)
    if (harmless.test(type) || !(guards.onAnswers || guards.onRequests)) void session.tell(text)
  }

  #begin({ response }: JsonObject, text: string): void {
    const id = isObject(response) ? textOf(response.id) : null
    const turn = id === null ? null : this.#session.turns.begin(id)
    if (turn === null) {
      this.#session.breach('it began a response that was not asked for, or one with a used id')
      return
    }
    turn.push(text, false)
  }

  #ofResponse(id: string, type: string, event: JsonObject, text: string): void {
    const { turns, facts } = this.#session
    const turn = turns.of(id)
    if (turn === 'ended') return
    if (turn === null) {
      this.#session.breach('it sent an event of a response that was not asked for')
      return
    }
    if (isObject(event.item) && typeof event.item.id === 'string') turn.items.add(event.item.id)
    const isLast = type === 'response.done'
    if (isLast) {
      turns.end(id)
      const output = isObject(event.response) ? objectsOf(event.response.output) : []
      if (turn.inConversation) facts.context.tokens += estimateTokens(textLength(output))
    }
    turn.push(text, isLast)
  }

  /** An error belongs to the response whose event it names. No policy reads the words of any other. */
  #error(event: JsonObject, text: string, { onAnswers }: Guards): void {
    const session = this.#session
    const error = isObject(event.error) ? event.error : {}
    const turn = session.turns.refused(error.event_id)
    if (turn === null) {
      // There was nothing to commit, so no confirmation comes.
      if (/commit/.test(textOf(error.code) ?? '') && this.#client.commits > 0) this.#client.commits -= 1
      const shown = onAnswers ? JSON.stringify({ ...event, error: { ...error, message: uninspected } }) : text
      void session.tell(maskKeyInText(session.exchange, shown))
      return
    }
    const { event_id: _, ...rest } = error
    turn.refused(rest)
  }

  /** The client sees the setting that it chose, not the one that the gateway made of it. */
  #settings(event: JsonObject, text: string): void {
    const session = this.#session
    if (!isObject(event.session)) return
    session.settings = event.session
    const shown = session.answersTurns ? { ...event, session: withResponses(event.session, true) } : null
    void session.tell(shown === null ? text : JSON.stringify(shown))
  }

  #item(event: JsonObject, text: string, { onAnswers, onRequests }: Guards): void {
    const session = this.#session
    const item = isObject(event.item) ? event.item : {}
    const isAnswer = !session.ownItems.has(item.id)
    const turn = isAnswer ? session.turns.ofItem(item.id) : null
    if (turn !== null) {
      turn.push(text, false)
      return
    }
    // Nothing reads an item of an answer behind its response.
    if (isAnswer && onAnswers) return
    if (!onRequests || !objectsOf(item.content).some(({ transcript }) => isGiven(transcript)))
      return void session.tell(text)
    // What was said is told when it was read.
    const content = objectsOf(item.content).map((part) => ({ ...part, transcript: null }))
    void session.tell(JSON.stringify({ ...event, item: { ...item, content } }))
  }

  #transcript(event: JsonObject, text: string, { onRequests }: Guards): void {
    const { transcripts } = this.#session
    const kind = textOf(event.type)?.split('.').at(-1)
    if (kind === 'completed' || kind === 'failed') transcripts.ended(event)
    if (!onRequests) return void this.#session.tell(text)
    if (kind === 'completed') return void transcripts.written(event, text)
    if (kind !== 'failed') return
    void this.#session.tell(text)
    transcripts.unreadable(textOf(event.item_id) ?? '')
  }

  /** Sound was taken into the conversation: the end of a turn of speech, unless the client asked for it. */
  #committed({ item_id: id }: JsonObject, { readText }: Guards): void {
    const session = this.#session
    const itemId = textOf(id) ?? ''
    if (session.ownItems.has(itemId)) {
      session.breach('it took sound into an item that there is already')
      return
    }
    session.ownItems.add(itemId)
    const isOfClient = this.#client.commits > 0
    if (isOfClient) this.#client.commits -= 1
    const reading = readText ? session.transcripts.await(itemId) : Promise.resolve(true)
    if (readText && session.transcriptionModel === null) session.transcripts.unreadable(itemId)
    session.transcripts.begin(itemId)
    if (isOfClient || !session.answersTurns) return
    void reading.then(async (stays) => {
      await session.turns.whenIdle()
      if (stays) this.#client.answerTurn()
    })
  }
}

/**
 * What a client sends, in order. Each event is written anew from what was read of it, so that the provider cannot read
 * another one.
 *
 * | event | what happens |
 * |---|---|
 * | `session.update`, `conversation.item.create` | read by the policies of requests, if there are any, then sent |
 * | `response.create` | a request: admitted, reserved, opened, sent |
 * | `input_audio_buffer.append` | sent; refused while a policy must read text and nothing transcribes |
 * | `conversation.item.retrieve` | refused while a policy inspects answers: the item would come again uninspected |
 * | commits, clears, cancels, truncations, deletions | sent |
 * | anything else | refused |
 */
import { asFailure, Failure } from '../../failure.ts'
import { estimateTokens } from '../../languages/dialect.ts'
import { isObject, type JsonObject, parseObject, textOf } from '../../languages/reading/json-value.ts'
import { textLength } from '../../languages/reading/texts/texts.ts'
import { heardTokens, soundFormat, soundSeconds } from '../../languages/realtime/events.ts'
import {
  answersTurns,
  checkSettings,
  transcriptionModel,
  withResponses,
} from '../../languages/realtime/session-settings.ts'
import { endingOf } from '../websocket/endings.ts'
import { passEvents } from '../websocket/outlet.ts'
import type { Guards } from './admission.ts'
import { EventRate } from './event-rate.ts'
import type { LiveSession } from './live-session.ts'
import { checkTranscriber } from './speech.ts'
import { Turn } from './turn.ts'

/** Events that are sent as they are. */
const sentOn: ReadonlySet<string> = new Set([
  'input_audio_buffer.commit',
  'input_audio_buffer.clear',
  'output_audio_buffer.clear',
  'conversation.item.delete',
  'conversation.item.truncate',
  'response.cancel',
])

interface Waiting {
  readonly event: JsonObject
  readonly length: number
}

export class ClientEvents {
  readonly #session: LiveSession
  readonly #waiting: Waiting[] = []
  readonly #rate: EventRate
  /** Bytes of the events that wait for their turn. */
  waitingBytes = 0
  /** Commits of the client whose confirmation has not come: they end no turn of speech. */
  commits = 0
  #isReady = false
  #isWorking = false
  /** The client was told that its sound needs a transcript, and has not changed the session since. */
  #toldTranscription = false

  constructor(session: LiveSession) {
    this.#session = session
    const { settings, clock } = session.gateway
    this.#rate = new EventRate(settings.realtime_events_per_second, clock.monotonic())
  }

  take(text: string): void {
    const session = this.#session
    if (!this.#rate.takes(session.gateway.clock.monotonic())) {
      session.fail(new Failure('realtime_rate_exceeded'), { code: 1008, reason: 'Too many events a second' })
      return
    }
    const event = parseObject(text)
    if (event === null) {
      session.fail(new Failure('invalid_json', { message: 'The event is not a JSON object' }))
      return
    }
    this.#enqueue(event, text.length)
  }

  /** The session with the provider is ready for events. */
  begin(): void {
    this.#isReady = true
    void this.#work()
  }

  /** Drops what waits. */
  clear(): void {
    this.#waiting.length = 0
    this.waitingBytes = 0
  }

  /** Asks for the answer to a turn of speech, as the client's `response.create` would. */
  answerTurn(): void {
    if (!this.#session.isEnding) this.#enqueue({ type: 'response.create' }, 0)
  }

  #enqueue(event: JsonObject, length: number): void {
    this.#waiting.push({ event, length })
    this.waitingBytes += length
    void this.#work()
  }

  async #work(): Promise<void> {
    if (this.#isWorking || !this.#isReady) return
    this.#isWorking = true
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      this.waitingBytes -= next.length
      try {
        const handling = this.#handle(next.event)
        if (handling instanceof Promise) await handling
      } catch (thrown) {
        this.#session.refuse(asFailure(thrown), next.event.event_id)
      }
      this.#session.balance()
    }
    this.#isWorking = false
  }

  #handle(event: JsonObject): Promise<void> | void {
    const session = this.#session
    const guards = session.guards()
    if (guards === null || session.isEnding) return
    const type = textOf(event.type) ?? ''
    if (type === 'input_audio_buffer.append') return this.#append(event, guards)
    if (type === 'session.update') return this.#update(event, guards)
    if (type === 'conversation.item.create') return this.#createItem(event, guards)
    if (type === 'response.create') return this.#respond(event)
    if (type === 'conversation.item.retrieve' && guards.onAnswers) {
      const message = 'A policy inspects answers, and a retrieved item would come again uninspected'
      throw new Failure('invalid_parameter', { param: 'type', message })
    }
    if (!sentOn.has(type) && type !== 'conversation.item.retrieve') {
      const message = `The gateway does not know the event ${JSON.stringify(type.slice(0, 100))}`
      throw new Failure('invalid_parameter', { param: 'type', message })
    }
    if (type === 'input_audio_buffer.commit') this.commits += 1
    if (type === 'input_audio_buffer.clear') session.heardSeconds = 0
    session.toProvider(event)
  }

  #append(event: JsonObject, { readText }: Guards): void {
    const session = this.#session
    if (readText && session.transcriptionModel === null) {
      if (this.#toldTranscription) return
      this.#toldTranscription = true
      throw new Failure('transcription_required', { param: 'audio' })
    }
    const audio = textOf(event.audio)
    if (audio === null) throw new Failure('invalid_parameter', { param: 'audio', message: 'audio must be base64' })
    const seconds = soundSeconds(audio, soundFormat(session.settings, 'input'))
    session.heardSeconds += seconds
    const tokens = heardTokens(seconds)
    session.facts.context.tokens += tokens
    session.facts.context.sound += tokens
    session.toProvider(event)
  }

  async #update(event: JsonObject, guards: Guards): Promise<void> {
    const session = this.#session
    const settings = event.session
    if (!isObject(settings)) {
      throw new Failure('invalid_parameter', { param: 'session', message: 'session must be an object' })
    }
    checkSettings(settings, 'session')
    const { model, ...others } = settings
    if (model !== undefined && model !== session.exchange.facts?.model) {
      const message = 'A session keeps its model: open another session for another one'
      throw new Failure('invalid_parameter', { param: 'session.model', message })
    }
    const transcriber = transcriptionModel(others)
    if (transcriber !== null) checkTranscriber(session.exchange, session.gateway, transcriber)
    const answers = answersTurns(others)
    await this.#pass(event, others, guards, (governed) => {
      if (answers !== null) session.answersTurns = answers
      this.#toldTranscription = false
      session.toProvider({ ...headOf(event), session: withResponses(governed, false) })
    })
  }

  async #createItem(event: JsonObject, guards: Guards): Promise<void> {
    const session = this.#session
    if (!isObject(event.item)) {
      throw new Failure('invalid_parameter', { param: 'item', message: 'item must be an object' })
    }
    // An item of the client is known by its id when the provider tells of it.
    const item = { id: `item_${Bun.randomUUIDv7('hex').slice(0, 26)}`, ...event.item }
    if (typeof item.id === 'string') session.ownItems.add(item.id)
    await this.#pass(event, { input: [item] }, guards, ({ input }) => {
      session.facts.context.tokens += estimateTokens(textLength(input))
      const [governed = item] = Array.isArray(input) ? input : []
      const previous = event.previous_item_id === undefined ? {} : { previous_item_id: event.previous_item_id }
      session.toProvider({ ...headOf(event), ...previous, item: governed })
    })
  }

  /** Lets policies read a body of an event, if there are any, and passes it on as they left it. */
  async #pass(
    event: JsonObject,
    body: JsonObject,
    { onRequests }: Guards,
    pass: (governed: JsonObject) => void,
  ): Promise<void> {
    if (!onRequests) return pass(body)
    const refusal = await this.#session.govern.event(this.#session.arrivalOf(body), this.#session.facts, pass)
    if (refusal.status !== 204) await this.#tellRefusal(refusal, event.event_id)
  }

  async #respond(event: JsonObject): Promise<void> {
    const session = this.#session
    const asked = isObject(event.response) ? event.response : {}
    checkSettings(asked, 'response')
    await session.transcripts.read()
    if (session.isEnding) return
    const { max_output_tokens: limit } = session.settings
    const arrival = session.arrivalOf({ ...(limit === undefined ? {} : { max_output_tokens: limit }), ...asked })
    const turn = new Turn(session, session.gateway.newId(), asked.conversation !== 'none')
    session.turns.add(turn)
    const answered = this.#answer(turn, session.govern.turn(arrival, session.facts, turn), event.event_id)
    await Promise.race([turn.sent.promise, answered])
  }

  async #answer(turn: Turn, answering: Promise<Response>, eventId: unknown): Promise<void> {
    const session = this.#session
    try {
      const answer = await answering
      const isStream = answer.headers.get('content-type')?.startsWith('text/event-stream') === true
      if (!isStream || answer.body === null) await this.#tellRefusal(answer, eventId)
      else await passEvents(answer.body, session.left.signal, (data) => session.tell(data))
    } catch (thrown) {
      // A stream ends in events, never in an error, so an exception is a defect.
      session.fail(asFailure(thrown))
    } finally {
      session.turns.remove(turn)
    }
  }

  /** Tells a refusal of the gateway, or of the provider; some end the session. */
  async #tellRefusal(refusal: Response, eventId: unknown): Promise<void> {
    const body = parseObject(await refusal.text()) ?? {}
    this.#session.tellError({ ...body, type: 'error' }, eventId)
    const code = isObject(body.error) ? textOf(body.error.code) : null
    const isOurs = refusal.headers.get('x-service-error-source') !== 'upstream'
    const ending = isOurs ? endingOf(code ?? '') : null
    if (ending !== null) this.#session.endWith(ending, true)
  }
}

/** What stays of an event whose text policies read: members that they did not read do not pass. */
const headOf = ({ type, event_id: id }: JsonObject): JsonObject => ({
  type,
  ...(typeof id === 'string' && { event_id: id }),
})

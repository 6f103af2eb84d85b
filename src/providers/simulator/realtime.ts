/**
 * The simulator's realtime sessions: the events of OpenAI's generally available form, of a conversation kept in memory.
 * Spoken answers are a tone for each word beside its transcript. It hears nothing: a turn of speech begins with sound
 * that is not silent and ends with silence, and its transcript says how long it was.
 */
import {
  isGiven,
  isObject,
  type JsonObject,
  objectsOf,
  parseObject,
  textOf,
} from '../../languages/reading/json-value.ts'
import { heardTokens, soundFormat, soundSeconds } from '../../languages/realtime/events.ts'
import type { ClientSocket, SocketHandlers } from '../../lib/http/dial-socket.ts'
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import { limitOf, type SimulatedModel, say } from './text.ts'

/** Sound of one word: 40 milliseconds of PCM. */
const wordSound = Buffer.alloc(1920, 1).toString('base64')
const spokenTokensPerWord = 1
const noSound = /^A*={0,2}$/

export function simulateSession(model: SimulatedModel, handlers: SocketHandlers): ClientSocket {
  const session = new SimulatedSession(model, handlers)
  queueMicrotask(() => session.begin())
  return {
    send: (text) => queueMicrotask(() => session.take(text)),
    bufferedAmount: 0,
    pause: () => undefined,
    resume: () => undefined,
    close: () => session.close(),
  }
}

class SimulatedSession {
  readonly #model: SimulatedModel
  readonly #handlers: SocketHandlers
  #settings: JsonObject
  #items: JsonObject[] = []
  #numbers = 0
  /** Seconds of sound in the buffer, and whether a turn of speech is running. */
  #heard = 0
  #speaking = false
  #running: { id: string; cancelled: boolean } | null = null
  #closed = false

  constructor(model: SimulatedModel, handlers: SocketHandlers) {
    this.#model = model
    this.#handlers = handlers
    this.#settings = {
      type: 'realtime',
      object: 'realtime.session',
      id: this.#id('sess'),
      model,
      output_modalities: ['audio'],
      instructions: '',
      tools: [],
      tool_choice: 'auto',
      max_output_tokens: 'inf',
      audio: {
        input: {
          format: { type: 'audio/pcm', rate: 24_000 },
          transcription: null,
          turn_detection: { type: 'server_vad', create_response: true, interrupt_response: true },
        },
        output: { format: { type: 'audio/pcm', rate: 24_000 }, voice: 'tone' },
      },
    }
  }

  begin(): void {
    this.#tell('session.created', { session: this.#settings })
  }

  close(): void {
    this.#closed = true
  }

  take(text: string): void {
    const event = parseObject(text)
    if (event === null || this.#closed) return
    const item = this.#items.find(({ id }) => id === event.item_id)
    switch (event.type) {
      case 'session.update':
        this.#settings = merged(this.#settings, isObject(event.session) ? event.session : {})
        this.#tell('session.updated', { session: this.#settings })
        return
      case 'conversation.item.create':
        this.#add({ id: this.#id('item'), ...(isObject(event.item) ? event.item : {}) })
        return
      case 'conversation.item.retrieve':
        if (item === undefined) this.#refuse(event)
        else this.#tell('conversation.item.retrieved', { item })
        return
      case 'conversation.item.delete':
        this.#items = this.#items.filter((each) => each !== item)
        this.#tell('conversation.item.deleted', { item_id: event.item_id })
        return
      case 'conversation.item.truncate': {
        const { item_id, content_index, audio_end_ms } = event
        this.#tell('conversation.item.truncated', { item_id, content_index, audio_end_ms })
        return
      }
      case 'input_audio_buffer.append':
        this.#hear(textOf(event.audio) ?? '')
        return
      case 'input_audio_buffer.clear':
        this.#heard = 0
        this.#tell('input_audio_buffer.cleared', {})
        return
      case 'input_audio_buffer.commit':
        if (this.#heard === 0) this.#refuse(event)
        else this.#commit()
        return
      case 'response.create':
        if (this.#running !== null) {
          this.#refuse(event, 'conversation_already_has_active_response')
          return
        }
        void this.#respond(isObject(event.response) ? event.response : {})
        return
      case 'response.cancel':
        if (this.#running === null) {
          this.#refuse(event, 'response_cancel_not_active')
          return
        }
        this.#running.cancelled = true
        return
      default:
        this.#refuse(event)
    }
  }

  #id(prefix: string): string {
    this.#numbers += 1
    return `${prefix}_simulator_${this.#numbers}`
  }

  #tell(type: string, members: object): void {
    if (!this.#closed) this.#handlers.received(JSON.stringify({ type, event_id: this.#id('event'), ...members }))
  }

  #refuse({ type, event_id }: JsonObject, code = 'invalid_value'): void {
    const message = `The simulator cannot do ${String(type)} now`
    this.#tell('error', {
      error: { type: 'invalid_request_error', code, message, param: null, event_id: event_id ?? null },
    })
  }

  #add(item: JsonObject): void {
    const previous = this.#items.at(-1)?.id ?? null
    const whole = { object: 'realtime.item', status: 'completed', ...item }
    this.#items.push(whole)
    this.#tell('conversation.item.added', { previous_item_id: previous, item: whole })
    this.#tell('conversation.item.done', { previous_item_id: previous, item: whole })
  }

  get #input(): JsonObject {
    const { audio } = this.#settings
    return isObject(audio) && isObject(audio.input) ? audio.input : {}
  }

  #hear(base64: string): void {
    const isSilent = noSound.test(base64)
    const detects = isObject(this.#input.turn_detection)
    if (!isSilent || !detects) this.#heard += soundSeconds(base64, soundFormat(this.#settings, 'input'))
    if (!detects) return
    if (!isSilent && !this.#speaking) {
      this.#speaking = true
      const { turn_detection: detection } = this.#input
      const interrupts = !isObject(detection) || detection.interrupt_response !== false
      if (this.#running !== null && interrupts) this.#running.cancelled = true
      this.#tell('input_audio_buffer.speech_started', { audio_start_ms: 0, item_id: this.#id('item') })
    } else if (isSilent && this.#speaking) {
      this.#speaking = false
      this.#tell('input_audio_buffer.speech_stopped', { audio_end_ms: 0, item_id: this.#id('item') })
      this.#commit()
      const { turn_detection: detection } = this.#input
      if (isObject(detection) && detection.create_response !== false) void this.#respond({})
    }
  }

  #commit(): void {
    const seconds = this.#heard
    this.#heard = 0
    const transcript = `Simulated transcript of ${Math.round(1000 * seconds)} milliseconds.`
    const id = this.#id('item')
    this.#tell('input_audio_buffer.committed', { item_id: id, previous_item_id: this.#items.at(-1)?.id ?? null })
    this.#add({ id, type: 'message', role: 'user', content: [{ type: 'input_audio', transcript: null, seconds }] })
    if (!isGiven(this.#input.transcription)) return
    const item = this.#items.at(-1)
    if (item !== undefined) item.content = [{ type: 'input_audio', transcript, seconds }]
    const tokens = heardTokens(seconds)
    const usage = {
      type: 'tokens',
      input_tokens: tokens,
      output_tokens: 5,
      total_tokens: tokens + 5,
      input_token_details: { audio_tokens: tokens, text_tokens: 0 },
    }
    const place = { item_id: id, content_index: 0 }
    this.#tell('conversation.item.input_audio_transcription.completed', { ...place, transcript, usage })
  }

  async #respond(asked: JsonObject): Promise<void> {
    const running = { id: this.#id('resp'), cancelled: false }
    this.#running = running
    const settings = merged(this.#settings, asked)
    const isSpoken = !objectOrList(settings.output_modalities).includes('text')
    const input = [...this.#items, ...objectsOf(asked.input)]
    const texts = input.map(itemText)
    const lastText = itemText(input.findLast(({ role }) => role === 'user') ?? {})
    const limit = limitOf(settings, ['max_output_tokens'])
    const said = say({ model: this.#model, lastText, texts: [textOf(settings.instructions) ?? '', ...texts], limit })
    const response: JsonObject = {
      object: 'realtime.response',
      id: running.id,
      status: 'in_progress',
      status_details: null,
      output: [],
      conversation_id: 'conv_simulator',
      output_modalities: settings.output_modalities,
      max_output_tokens: settings.max_output_tokens,
      metadata: asked.metadata ?? null,
      usage: null,
    }
    const item: JsonObject = { id: this.#id('item'), type: 'message', role: 'assistant', status: 'in_progress' }
    const place = { response_id: running.id, item_id: item.id, output_index: 0, content_index: 0 }
    const around = { response_id: running.id, output_index: 0 }
    const part = (text: string) =>
      isSpoken ? { type: 'output_audio', transcript: text } : { type: 'output_text', text }
    this.#tell('response.created', { response })
    this.#tell('response.output_item.added', { ...around, item: { ...item, content: [] } })
    this.#tell('conversation.item.added', { previous_item_id: null, item: { ...item, content: [] } })
    this.#tell('response.content_part.added', { ...place, part: part('') })
    const words: string[] = []
    for (const delta of said.words) {
      await yieldToEventLoop()
      if (running.cancelled || this.#closed) break
      words.push(delta)
      if (isSpoken) this.#tell('response.output_audio.delta', { ...place, delta: wordSound })
      this.#tell(isSpoken ? 'response.output_audio_transcript.delta' : 'response.output_text.delta', {
        ...place,
        delta,
      })
    }
    const text = words.join('')
    if (isSpoken) {
      this.#tell('response.output_audio.done', place)
      this.#tell('response.output_audio_transcript.done', { ...place, transcript: text })
    } else this.#tell('response.output_text.done', { ...place, text })
    this.#tell('response.content_part.done', { ...place, part: part(text) })
    const status = running.cancelled ? 'cancelled' : said.cut ? 'incomplete' : 'completed'
    const whole = { ...item, status: status === 'completed' ? status : 'incomplete', content: [part(text)] }
    this.#tell('response.output_item.done', { ...around, item: whole })
    this.#tell('conversation.item.done', { previous_item_id: null, item: whole })
    if (asked.conversation !== 'none') this.#items.push(whole)
    this.#running = null
    const heard = heardTokens(input.reduce((sum, each) => sum + itemSeconds(each), 0))
    const spoken = isSpoken ? words.length * spokenTokensPerWord : 0
    const inputTokens = said.inputTokens + heard
    this.#tell('response.done', {
      response: {
        ...response,
        status,
        status_details: detailsOf(status),
        output: [whole],
        usage: {
          total_tokens: inputTokens + words.length + spoken,
          input_tokens: inputTokens,
          output_tokens: words.length + spoken,
          input_token_details: { text_tokens: said.inputTokens, audio_tokens: heard, cached_tokens: 0 },
          output_token_details: { text_tokens: words.length, audio_tokens: spoken },
        },
      },
    })
  }
}

const detailsOf = (status: string): JsonObject => {
  if (status === 'cancelled') return { type: status, reason: 'client_cancelled' }
  return status === 'incomplete' ? { type: status, reason: 'max_output_tokens' } : { type: status }
}

const objectOrList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

function itemText({ content, output }: JsonObject): string {
  if (typeof output === 'string') return output
  return objectsOf(content)
    .map(({ text, transcript }) => textOf(text) ?? textOf(transcript) ?? '')
    .join('')
}

const itemSeconds = ({ content }: JsonObject): number =>
  objectsOf(content).reduce((sum, { seconds }) => sum + (typeof seconds === 'number' ? seconds : 0), 0)

/** Settings with others laid over them, objects member by member. */
function merged(settings: JsonObject, others: JsonObject): JsonObject {
  const all: JsonObject = { ...settings }
  for (const [name, value] of Object.entries(others)) {
    const present = all[name]
    all[name] = isObject(present) && isObject(value) ? merged(present, value) : value
  }
  return all
}

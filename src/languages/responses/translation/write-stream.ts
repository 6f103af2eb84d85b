/**
 * Writes the events of a streamed response: `response.created` first, every item and content part added before its text
 * and done after it, the whole response last. Clients build the answer from the pieces and check it by the whole
 * ones, so each is written in full. Texts that follow each other are parts of one message, which is done when
 * something else begins or the answer ends.
 */
import type { Usage } from '../../dialect.ts'
import type { FinishReason, LanguageName, NeutralError, NeutralEvent, NeutralPart } from '../../neutral.ts'
import type { JsonObject } from '../../reading/json-value.ts'
import { writeOpenAiError } from '../../translation/openai-shared.ts'
import { failed } from '../../translation/translation-errors.ts'
import type { AnswerStart, NeutralStreamWriter } from '../../translation-language.ts'
import { offeredTools } from '../offered-tools.ts'
import { CustomInput } from './custom-input.ts'
import {
  annotationOf,
  callItem,
  callPrefix,
  endOf,
  type ItemStatus,
  itemId,
  lastCutOff,
  messageItem,
  reasoningItem,
  refusalPart,
  responseBody,
  textPart,
} from './items.ts'
import { type StandIn, toolsByName } from './tools.ts'

interface Part {
  kind: NeutralPart['kind']
  text: string
  ended: boolean
  annotations: JsonObject[]
  /** Of a call. */
  callId: string
  name: string
  standIn: StandIn | null
  /** Of a call of a custom tool. */
  input: CustomInput | null
  /** Of a thought or a call. */
  signature: string | null
  redacted: boolean
  language: LanguageName | null
  item: Item
  /** Its place in a message. */
  place: number
}

interface Item {
  id: string
  index: number
  parts: Part[]
  done: boolean
}

type Event<Type extends NeutralEvent['type']> = NeutralEvent & { type: Type }

export class ResponsesStreamWriter implements NeutralStreamWriter {
  readonly #asked: AnswerStart
  readonly #tools: ReadonlyMap<string, StandIn | null>
  readonly #parts = new Map<number, Part>()
  readonly #items: Item[] = []
  /** The message that the next text belongs to. */
  #message: Item | null = null
  #model: string | null = null
  #started = false
  #number = 0
  #finish: FinishReason = 'stop'
  #usage: Usage | null = null

  constructor(asked: AnswerStart) {
    this.#asked = asked
    this.#tools = toolsByName(offeredTools(asked.request ?? {}))
  }

  event(event: NeutralEvent): string {
    if (event.type === 'start') return this.#start(event.model)
    if (event.type === 'part') return this.#start(null) + this.#begin(event)
    // One before anything has begun begins nothing: whoever relays it may still ask another provider.
    if (event.type === 'error') return this.#fail(event.error)
    if (event.type === 'usage') this.#usage = event.usage
    if (event.type === 'finish') this.#finish = event.finish
    if (event.type === 'end') return this.#start(null) + this.#end()
    const part = 'part' in event ? this.#parts.get(event.part) : undefined
    if (part === undefined) return ''
    if (event.type === 'text') return this.#text(part, event.text)
    if (event.type === 'citation') return this.#cite(part, event)
    if (event.type === 'part_end') return this.#endPart(part)
    if (event.type === 'signature') {
      part.signature = event.signature
      part.redacted = event.redacted
      part.language = event.language
    }
    return ''
  }

  #start(model: string | null): string {
    if (this.#started) return ''
    this.#started = true
    this.#model = model
    const response = this.#response({})
    return this.#frame('response.created', { response }) + this.#frame('response.in_progress', { response })
  }

  #begin(event: Event<'part'>): string {
    const isSpoken = event.kind === 'text' || event.kind === 'refusal'
    const before = isSpoken ? '' : this.#leaveMessage()
    const known = isSpoken ? this.#message : null
    const called =
      event.kind === 'tool_call' ? this.#called(event) : { callId: '', name: '', standIn: null, input: null }
    const item = known ?? this.#newItem(event.kind, called.standIn)
    if (isSpoken) this.#message = item
    const language = event.kind === 'thought' ? event.language : null
    const opaque = { signature: null, redacted: false, language }
    const part: Part = {
      ...{ kind: event.kind, text: '', ended: false, annotations: [], ...called, ...opaque },
      ...{ item, place: item.parts.length },
    }
    this.#parts.set(event.part, part)
    const empty = isSpoken ? messageItem(item.id, [], 'in_progress') : whole(part, 'in_progress')
    item.parts.push(part)
    const added =
      known === null ? this.#frame('response.output_item.added', { output_index: item.index, item: empty }) : ''
    if (!isSpoken) return before + added
    return added + this.#frame('response.content_part.added', { ...address(part), part: contentOf(part) })
  }

  #called({ id, name }: { id: string; name: string }) {
    const standIn = this.#tools.get(name) ?? null
    return { callId: id, name, standIn, input: standIn?.isCustom === true ? new CustomInput() : null }
  }

  #newItem(kind: NeutralPart['kind'], standIn: StandIn | null): Item {
    const prefix = kind === 'tool_call' ? callPrefix(standIn) : kind === 'thought' ? 'rs' : 'msg'
    const index = this.#items.length
    const item: Item = { id: itemId(prefix, this.#asked.exchangeId, index), index, parts: [], done: false }
    this.#items.push(item)
    return item
  }

  /** Something else begins: the message is done as soon as its parts are. */
  #leaveMessage(): string {
    const message = this.#message
    this.#message = null
    return message === null ? '' : this.#itemDone(message)
  }

  #text(part: Part, text: string): string {
    const isFirst = part.text === ''
    part.text += text
    const { item } = part
    if (part.kind === 'text')
      return this.#frame('response.output_text.delta', { ...address(part), delta: text, logprobs: [] })
    if (part.kind === 'refusal') return this.#frame('response.refusal.delta', { ...address(part), delta: text })
    const place = { item_id: item.id, output_index: item.index }
    if (part.kind === 'tool_call') {
      if (part.input !== null) return this.#inputDelta(place, part.input.push(text))
      return this.#frame('response.function_call_arguments.delta', { ...place, delta: text })
    }
    const summary = { ...place, summary_index: 0 }
    const empty = { type: 'summary_text', text: '' }
    const added = isFirst ? this.#frame('response.reasoning_summary_part.added', { ...summary, part: empty }) : ''
    return added + this.#frame('response.reasoning_summary_text.delta', { ...summary, delta: text })
  }

  #cite(part: Part, { citation }: Event<'citation'>): string {
    if (part.kind !== 'text') return ''
    const annotation = annotationOf(citation, part.text.length)
    const index = part.annotations.push(annotation) - 1
    const members = { ...address(part), annotation_index: index, annotation }
    return this.#frame('response.output_text.annotation.added', members)
  }

  #endPart(part: Part): string {
    if (part.ended) return ''
    part.ended = true
    const done = this.#partDone(part)
    return part.item === this.#message ? done : done + this.#itemDone(part.item)
  }

  #partDone(part: Part): string {
    const { item, text } = part
    const place = { item_id: item.id, output_index: item.index }
    if (part.kind === 'tool_call') {
      if (part.input !== null) return this.#inputDone(place, part.input)
      const name = part.standIn?.name ?? part.name
      return this.#frame('response.function_call_arguments.done', { ...place, name, arguments: text })
    }
    if (part.kind === 'thought') {
      if (text === '') return ''
      const summary = { ...place, summary_index: 0 }
      const whole = { type: 'summary_text', text }
      return (
        this.#frame('response.reasoning_summary_text.done', { ...summary, text }) +
        this.#frame('response.reasoning_summary_part.done', { ...summary, part: whole })
      )
    }
    const said =
      part.kind === 'refusal'
        ? this.#frame('response.refusal.done', { ...address(part), refusal: text })
        : this.#frame('response.output_text.done', { ...address(part), text, logprobs: [] })
    return said + this.#frame('response.content_part.done', { ...address(part), part: contentOf(part) })
  }

  #inputDelta(place: JsonObject, delta: string): string {
    return delta === '' ? '' : this.#frame('response.custom_tool_call_input.delta', { ...place, delta })
  }

  #inputDone(place: JsonObject, input: CustomInput): string {
    const last = this.#inputDelta(place, input.end())
    return last + this.#frame('response.custom_tool_call_input.done', { ...place, input: input.value })
  }

  #itemDone(item: Item): string {
    if (item.done || item.parts.some(({ ended }) => !ended)) return ''
    item.done = true
    return this.#frame('response.output_item.done', { output_index: item.index, item: writtenItem(item) })
  }

  #end(): string {
    if (this.#finish === 'error') return this.#fail(failed)
    const open = [...this.#parts.values()].map((part) => this.#endPart(part)).join('')
    const message = this.#leaveMessage()
    const end = endOf(this.#finish, [...this.#parts.values()])
    const type = end.status === 'incomplete' ? 'response.incomplete' : 'response.completed'
    const response = this.#response(end)
    if (end.status === 'incomplete') response.output = lastCutOff(this.#items.map(writtenItem))
    return open + message + this.#frame(type, { response })
  }

  /** Flat for those that yield it as an event, nested for those that throw what is in `error`. */
  #fail(error: NeutralError): string {
    const { code, message } = error
    const event = this.#frame('error', { code, message, param: null, ...writeOpenAiError(error) })
    const response = this.#response({ status: 'failed', error: { code: code ?? 'server_error', message } })
    return event + this.#frame('response.failed', { response })
  }

  #response(members: JsonObject): JsonObject {
    const output = this.#items.map(writtenItem)
    return responseBody(this.#asked, this.#model, { output, usage: this.#usage, ...members })
  }

  #frame(type: string, members: JsonObject): string {
    return `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: this.#number++, ...members })}\n\n`
  }
}

const address = ({ item, place }: Part): JsonObject => ({
  item_id: item.id,
  output_index: item.index,
  content_index: place,
})

const contentOf = ({ kind, text, annotations }: Part): JsonObject =>
  kind === 'refusal' ? refusalPart(text) : textPart(text, annotations)

/** The item of a part that is all of it. */
function whole(
  { kind, text, item, callId, name, standIn, input, signature, redacted, language }: Part,
  status: ItemStatus,
): JsonObject {
  if (kind === 'tool_call') {
    const signed = signature === null || language === null ? {} : { signature: { text: signature, language } }
    const call = { id: callId, name, arguments: text, ...(input !== null && { input: input.value }), ...signed }
    return callItem(item.id, call, status, standIn)
  }
  // What it is signed with is known when it is done.
  if (status === 'in_progress') return reasoningItem(item.id, text, { signature: null, redacted: null, language: null })
  const opaque = { signature: redacted ? null : signature, redacted: redacted ? signature : null, language }
  return reasoningItem(item.id, text, opaque)
}

function writtenItem(item: Item): JsonObject {
  const status = item.done ? 'completed' : 'incomplete'
  const [first] = item.parts
  if (first !== undefined && (first.kind === 'tool_call' || first.kind === 'thought')) return whole(first, status)
  return messageItem(item.id, item.parts.map(contentOf), status)
}

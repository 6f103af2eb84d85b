/**
 * Follows a provider's stream of response events. A part is one content part of a message, one call, or one reasoning
 * item; it begins with its first text, because some items hold nothing, and text that comes only whole, with an event
 * that says it is done, is taken from there. Ends with `response.completed`, `response.incomplete` or `response.failed`.
 */

import { asFailure } from '../../../failure.ts'
import { annotationsIn } from '../../chat/translation/annotations.ts'
import type { NeutralEvent, NeutralPart } from '../../neutral.ts'
import { isDone } from '../../reading/frames/done-marker.ts'
import { isObject, type JsonObject, objectsOf, textOf } from '../../reading/json-value.ts'
import { readOpenAiError } from '../../translation/openai-shared.ts'
import { frameObject } from '../../translation/translation-errors.ts'
import type { NeutralStreamReader } from '../../translation-language.ts'
import { readUsage } from '../answer.ts'
import { checkItem, finishOf } from './answers.ts'
import { betweenSummaries } from './read-request.ts'

interface Open {
  part: number
  /** Text of it has come. */
  said: boolean
  /** The summary part that goes on. */
  summary: unknown
  ended: boolean
}

type Words = 'text' | 'thought' | 'refusal'

export class ResponsesStreamReader implements NeutralStreamReader {
  #events: NeutralEvent[] = []
  /** By item and content part; an item that is one part is `2/`. */
  readonly #open = new Map<string, Open>()
  readonly #kinds: Pick<NeutralPart, 'kind'>[] = []
  #started = false
  #ended = false

  frame(name: string | null, data: string): readonly NeutralEvent[] {
    this.#events = []
    if (this.#ended || isDone(data)) return this.#events
    const event = frameObject(data)
    const type = textOf(event.type) ?? name ?? ''
    if (type === 'error' || (isObject(event.error) && type === '')) this.#fail(event)
    else if (isObject(event.response)) this.#response(type, event.response)
    else if (isObject(event.item)) this.#item(type, event, event.item)
    else this.#piece(type, event)
    return this.#events
  }

  /** The language's streams always say their end. */
  end(): readonly NeutralEvent[] {
    return []
  }

  #fail(holder: JsonObject): void {
    this.#ended = true
    this.#events.push({ type: 'error', error: readOpenAiError(null, holder) })
  }

  #response(type: string, response: JsonObject): void {
    if (!this.#started) {
      this.#started = true
      this.#events.push({ type: 'start', id: textOf(response.id), model: textOf(response.model) })
    }
    if (type === 'response.failed') this.#fail(response)
    if (type !== 'response.completed' && type !== 'response.incomplete') return
    // Some providers bring items, or those of one type, with the last event only.
    const streamed = new Set(this.#kinds.map(({ kind }) => kind))
    for (const [index, item] of objectsOf(response.output).entries()) {
      if (!kindsOf(item).some((kind) => streamed.has(kind))) this.#whole(`last ${index}`, item)
    }
    for (const open of this.#open.values()) this.#end(open)
    const usage = readUsage(response)
    if (usage !== null) this.#events.push({ type: 'usage', usage })
    const status = type.slice('response.'.length)
    const finish = finishOf({ ...response, status }, this.#kinds)
    this.#events.push({ type: 'finish', finish, stopSequence: null }, { type: 'end' })
    this.#ended = true
  }

  #item(type: string, { output_index: index }: JsonObject, item: JsonObject): void {
    try {
      checkItem(item)
    } catch (thrown) {
      const { code, message } = asFailure(thrown)
      this.#ended = true
      this.#events.push({ type: 'error', error: { status: null, code, message } })
      return
    }
    if (type === 'response.output_item.done') this.#whole(index, item)
    else if (item.type === 'function_call') this.#call(index, item)
  }

  /** An item that is done: what of it was not streamed is taken from it, and its parts end. */
  #whole(index: unknown, item: JsonObject): void {
    if (item.type === 'function_call') {
      const open = this.#call(index, item)
      this.#unlessSaid(open, textOf(item.arguments))
      this.#end(open)
    } else if (item.type === 'message') {
      for (const [place, part] of objectsOf(item.content).entries()) {
        this.#contentDone({ output_index: index, content_index: place }, part)
      }
    } else if (item.type === 'reasoning') this.#reasoningDone(index, item)
  }

  #reasoningDone(index: unknown, item: JsonObject): void {
    const texts = objectsOf(item.summary).length > 0 ? item.summary : item.content
    const text = objectsOf(texts)
      .flatMap((part) => textOf(part.text) || [])
      .join(betweenSummaries)
    const encrypted = textOf(item.encrypted_content)
    if (text === '' && encrypted === null) return
    const open = this.#opened(`${index}/`, 'thought')
    this.#unlessSaid(open, text)
    if (encrypted !== null && !open.ended) {
      const { part } = open
      this.#events.push({ type: 'signature', part, signature: encrypted, redacted: false, language: 'responses' })
    }
    this.#end(open)
  }

  #contentDone(event: JsonObject, part: JsonObject): void {
    const isRefusal = part.type === 'refusal'
    const text = textOf(isRefusal ? part.refusal : part.text)
    if (text === null || part.type === 'reasoning_text' || part.type === 'summary_text') return
    const known = this.#open.get(keyOf(event))
    const open = known ?? this.#opened(keyOf(event), isRefusal ? 'refusal' : 'text')
    this.#unlessSaid(open, text)
    if (known === undefined) this.#cite(open, annotationsIn(part.annotations))
    this.#end(open)
  }

  #piece(type: string, event: JsonObject): void {
    const delta = textOf(event.delta) ?? ''
    if (type === 'response.output_text.delta') this.#say(keyOf(event), 'text', delta)
    else if (type === 'response.refusal.delta') this.#say(keyOf(event), 'refusal', delta)
    else if (type === 'response.reasoning_summary_text.delta') this.#think(event, event.summary_index, delta)
    else if (thoughtDeltas.has(type)) this.#think(event, event.content_index, delta)
    else if (type === 'response.output_text.done') this.#saidWhole(event, 'text', textOf(event.text))
    else if (type === 'response.refusal.done') this.#saidWhole(event, 'refusal', textOf(event.refusal))
    else if (type === 'response.function_call_arguments.delta') {
      const open = this.#open.get(`${event.output_index}/`)
      if (open !== undefined) this.#add(open, delta)
    } else if (type === 'response.output_text.annotation.added' && isObject(event.annotation)) {
      this.#cite(this.#opened(keyOf(event), 'text'), annotationsIn([event.annotation]))
    } else if (type === 'response.content_part.done' && isObject(event.part)) this.#contentDone(event, event.part)
  }

  #think(event: JsonObject, place: unknown, delta: string): void {
    if (delta === '') return
    const open = this.#opened(`${event.output_index}/`, 'thought')
    if (open.said && open.summary !== place) this.#add(open, betweenSummaries)
    open.summary = place
    this.#add(open, delta)
  }

  #say(key: string, kind: Words, text: string): void {
    if (text !== '') this.#add(this.#opened(key, kind), text)
  }

  #saidWhole(event: JsonObject, kind: Words, text: string | null): void {
    if (text !== null && text !== '') this.#unlessSaid(this.#opened(keyOf(event), kind), text)
  }

  #add(open: Open, text: string): void {
    if (text === '' || open.ended) return
    open.said = true
    this.#events.push({ type: 'text', part: open.part, text })
  }

  #unlessSaid(open: Open, text: string | null): void {
    if (!open.said && text !== null) this.#add(open, text)
  }

  #cite(open: Open, citations: ReturnType<typeof annotationsIn>): void {
    for (const citation of citations) this.#events.push({ type: 'citation', part: open.part, citation })
  }

  #opened(key: string, kind: Words): Open {
    const known = this.#open.get(key)
    if (known !== undefined) return known
    const open = this.#next(key, kind)
    const { part } = open
    this.#events.push(
      kind === 'thought' ? { type: 'part', part, kind, language: 'responses' } : { type: 'part', part, kind },
    )
    return open
  }

  #call(index: unknown, item: JsonObject): Open {
    const known = this.#open.get(`${index}/`)
    if (known !== undefined) return known
    const open = this.#next(`${index}/`, 'tool_call')
    const [id, name] = [textOf(item.call_id) ?? '', textOf(item.name) ?? '']
    this.#events.push({ type: 'part', part: open.part, kind: 'tool_call', id, name })
    return open
  }

  #next(key: string, kind: NeutralPart['kind']): Open {
    const open: Open = { part: this.#kinds.length, said: false, summary: null, ended: false }
    this.#kinds.push({ kind })
    this.#open.set(key, open)
    return open
  }

  #end(open: Open): void {
    if (!open.ended) this.#events.push({ type: 'part_end', part: open.part })
    open.ended = true
  }
}

const keyOf = ({ output_index: output, content_index: content }: JsonObject): string => `${output}/${content}`

/** The second name is that of the Open Responses specification. */
const thoughtDeltas: ReadonlySet<string> = new Set(['response.reasoning_text.delta', 'response.reasoning.delta'])

/** The kinds of parts that an output item becomes. */
function kindsOf({ type }: JsonObject): readonly NeutralPart['kind'][] {
  if (type === 'message') return ['text', 'refusal']
  return type === 'reasoning' ? ['thought'] : ['tool_call']
}

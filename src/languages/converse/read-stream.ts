/**
 * Follows a streamed answer of Converse (AWS Bedrock Runtime API, ConverseStreamOutput), whose events come as frames
 * with the event's name and its JSON. Only blocks of tool calls have a start event; others begin with their first
 * piece. The stream is complete with its metadata, or if it ends after `messageStop`; exceptions may come at any
 * time.
 */

import type { NeutralEvent } from '../neutral.ts'
import { isObject, type JsonObject, textOf } from '../reading/json-value.ts'
import { frameObject, unusable } from '../translation/translation-errors.ts'
import type { NeutralStreamReader } from '../translation-language.ts'
import {
  citationOf,
  finishOf,
  holdsMedia,
  mediaMessage,
  readConverseError,
  stopSequenceOf,
  usageOf,
} from './answers.ts'

export class ConverseStreamReader implements NeutralStreamReader {
  /** The part of each block. */
  readonly #parts = new Map<unknown, number>()
  #begun = 0
  #called = false
  #finished = false
  #ended = false

  frame(event: string | null, data: string): readonly NeutralEvent[] {
    const body = frameObject(data)
    if (event === null) throw unusable('The provider sent a frame without a name')
    switch (event) {
      case 'messageStart':
        return [{ type: 'start', id: null, model: null }]
      case 'contentBlockStart':
        return this.#start(body)
      case 'contentBlockDelta':
        return isObject(body.delta) ? this.#delta(body.contentBlockIndex, body.delta) : []
      case 'contentBlockStop':
        return this.#stop(body.contentBlockIndex)
      case 'messageStop':
        this.#finished = true
        return [{ type: 'finish', finish: finishOf(body.stopReason, this.#called), stopSequence: stopSequenceOf(body) }]
      case 'metadata':
        return this.#metadata(body)
      default:
        return event.endsWith('Exception') ? [exception(event, body)] : []
    }
  }

  end(): readonly NeutralEvent[] {
    return this.#finished ? this.#end() : []
  }

  #start({ contentBlockIndex: block, start }: JsonObject): NeutralEvent[] {
    if (isObject(start) && holdsMedia(start)) throw unusable(mediaMessage)
    const call = isObject(start) ? start.toolUse : null
    if (!isObject(call)) return []
    this.#called = true
    const part = this.#begin(block)
    return [{ type: 'part', part, kind: 'tool_call', id: textOf(call.toolUseId) ?? '', name: textOf(call.name) ?? '' }]
  }

  #delta(block: unknown, delta: JsonObject): NeutralEvent[] {
    const { text, toolUse, reasoningContent, citation } = delta
    if (holdsMedia(delta)) throw unusable(mediaMessage)
    if (typeof text === 'string') return this.#piece(block, 'text', text)
    if (isObject(toolUse)) {
      const part = this.#parts.get(block)
      if (part === undefined) throw unusable('The provider sent arguments before their tool call')
      return [{ type: 'text', part, text: textOf(toolUse.input) ?? '' }]
    }
    if (isObject(reasoningContent)) return this.#thought(block, reasoningContent)
    if (!isObject(citation)) return []
    const begin = this.#piece(block, 'text', '')
    return [...begin, { type: 'citation', part: this.#partOf(block), citation: citationOf(citation) }]
  }

  #thought(block: unknown, { text, signature, redactedContent }: JsonObject): NeutralEvent[] {
    if (typeof text === 'string') return this.#piece(block, 'thought', text)
    const begin = this.#piece(block, 'thought', '')
    const opaque = textOf(signature) ?? textOf(redactedContent)
    if (opaque === null) return begin
    const redacted = typeof signature !== 'string'
    return [
      ...begin,
      { type: 'signature', part: this.#partOf(block), signature: opaque, redacted, language: 'converse' },
    ]
  }

  /** A piece of a block, after the block's beginning if this is its first piece. */
  #piece(block: unknown, kind: 'text' | 'thought', text: string): NeutralEvent[] {
    const events: NeutralEvent[] = []
    if (!this.#parts.has(block)) {
      const part = this.#begin(block)
      events.push(kind === 'text' ? { type: 'part', part, kind } : { type: 'part', part, kind, language: 'converse' })
    }
    if (text !== '') events.push({ type: 'text', part: this.#partOf(block), text })
    return events
  }

  #begin(block: unknown): number {
    const part = this.#begun
    this.#begun += 1
    this.#parts.set(block, part)
    return part
  }

  #partOf(block: unknown): number {
    return this.#parts.get(block) ?? 0
  }

  #stop(block: unknown): NeutralEvent[] {
    const part = this.#parts.get(block)
    return part === undefined ? [] : [{ type: 'part_end', part }]
  }

  #metadata(body: JsonObject): readonly NeutralEvent[] {
    const usage = usageOf(body.usage)
    const said: NeutralEvent[] = usage === null ? [] : [{ type: 'usage', usage }]
    return this.#finished ? [...said, ...this.#end()] : said
  }

  #end(): readonly NeutralEvent[] {
    if (this.#ended) return []
    this.#ended = true
    return [{ type: 'end' }]
  }
}

const exception = (name: string, body: JsonObject): NeutralEvent => ({
  type: 'error',
  error: readConverseError(null, { ...body, __type: name }),
})

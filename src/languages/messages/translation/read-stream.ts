/**
 * Follows a stream of Anthropic's message events. Blocks are known by their index, and some providers start a message
 * again with the same indexes: those are further parts. Usage comes at the beginning and, cumulative, at the end.
 */
import type { Usage } from '../../dialect.ts'
import type { NeutralEvent } from '../../neutral.ts'
import { isObject, type JsonObject, objectsOf, textOf } from '../../reading/json-value.ts'
import { isAltered } from '../../reading/texts/signed-reasoning.ts'
import { argumentsText, frameObject } from '../../translation/translation-errors.ts'
import type { NeutralStreamReader } from '../../translation-language.ts'
import { readUsage } from '../texts.ts'
import { explanationOf, finishOf, readMessagesError } from './answers.ts'
import { citationOf } from './read-parts.ts'

interface Block {
  part: number
  isCall: boolean
  hasText: boolean
}

export class MessagesStreamReader implements NeutralStreamReader {
  readonly #blocks = new Map<number, Block>()
  #parts = 0
  #begun = false
  #called = false
  #usage: Usage | null = null

  frame(name: string | null, data: string): readonly NeutralEvent[] {
    const event = frameObject(data)
    const index = typeof event.index === 'number' ? event.index : 0
    switch (textOf(event.type) ?? name) {
      case 'message_start':
        return this.#start(isObject(event.message) ? event.message : {})
      case 'content_block_start':
        return isObject(event.content_block) ? this.#begin(index, event.content_block) : []
      case 'content_block_delta':
        return isObject(event.delta) ? this.#delta(index, event.delta) : []
      case 'content_block_stop':
        return this.#stop(index)
      case 'message_delta':
        return this.#finish(event)
      case 'message_stop':
        return [...this.#stopAll(), { type: 'end' }]
      case 'error':
        return [{ type: 'error', error: readMessagesError(null, event) }]
      default:
        return []
    }
  }

  /** The language has an end marker: a stream without it was cut off. */
  end(): readonly NeutralEvent[] {
    return []
  }

  #start(message: JsonObject): NeutralEvent[] {
    const start: NeutralEvent = { type: 'start', id: textOf(message.id), model: textOf(message.model) }
    const events: NeutralEvent[] = this.#begun ? this.#stopAll().map(abandoned) : [start]
    this.#begun = true
    // Its output count is from the start of the message and is not the final count.
    return [...events, ...this.#noteUsage(message.usage, false)]
  }

  #noteUsage(reported: unknown, withOutput: boolean): NeutralEvent[] {
    const told = readUsage(reported)
    if (told === null) return []
    const before = this.#usage
    const usage: Usage = {
      ...before,
      ...told,
      inputTokens: told.inputTokens ?? before?.inputTokens ?? null,
      outputTokens: (withOutput ? told.outputTokens : null) ?? before?.outputTokens ?? null,
      cachedInputTokens: told.cachedInputTokens ?? before?.cachedInputTokens ?? null,
      cacheWriteTokens: told.cacheWriteTokens ?? before?.cacheWriteTokens ?? null,
      reasoningTokens: told.reasoningTokens ?? before?.reasoningTokens ?? null,
    }
    this.#usage = usage
    return [{ type: 'usage', usage }]
  }

  #begin(index: number, content: JsonObject): NeutralEvent[] {
    const events = this.#stop(index)
    const part = this.#parts
    const begun = beginOfPart(part, content)
    if (begun === null) return events
    this.#parts++
    const block: Block = { part, isCall: begun.kind === 'tool_call', hasText: false }
    this.#blocks.set(index, block)
    this.#called ||= block.isCall
    events.push(begun)
    const { text, thinking, signature, data, input } = content
    const whole = block.isCall && input !== '' ? argumentsText(input) : '{}'
    const given = whole === '{}' ? null : whole
    events.push(...this.#text(block, given ?? textOf(text) ?? textOf(thinking)))
    for (const citation of objectsOf(content.citations)) {
      events.push({ type: 'citation', part, citation: citationOf(citation) })
    }
    events.push(...signed(block, textOf(signature), false), ...signed(block, textOf(data), true))
    return events
  }

  #text(block: Block, text: string | null): NeutralEvent[] {
    if (text === null || text === '') return []
    block.hasText = true
    return [{ type: 'text', part: block.part, text }]
  }

  #delta(index: number, delta: JsonObject): NeutralEvent[] {
    const block = this.#blocks.get(index)
    if (block === undefined) return []
    if (delta.type === 'signature_delta') return signed(block, textOf(delta.signature), false)
    if (delta.type !== 'citations_delta') {
      return this.#text(block, textOf(delta.text) ?? textOf(delta.partial_json) ?? textOf(delta.thinking))
    }
    if (!isObject(delta.citation)) return []
    return [{ type: 'citation', part: block.part, citation: citationOf(delta.citation) }]
  }

  /** A call without arguments has an empty object, as in a whole answer. */
  #stop(index: number): NeutralEvent[] {
    const block = this.#blocks.get(index)
    if (block === undefined) return []
    this.#blocks.delete(index)
    const text = block.isCall && !block.hasText ? this.#text(block, '{}') : []
    return [...text, { type: 'part_end', part: block.part }]
  }

  #stopAll(): NeutralEvent[] {
    return [...this.#blocks.keys()].flatMap((index) => this.#stop(index))
  }

  #finish({ delta, usage }: JsonObject): NeutralEvent[] {
    const said = isObject(delta) ? delta : {}
    const events = this.#noteUsage(usage, true)
    const explanation = explanationOf(said.stop_details)
    if (explanation !== null) {
      const part = this.#parts++
      events.push({ type: 'part', part, kind: 'refusal' }, { type: 'text', part, text: explanation })
      events.push({ type: 'part_end', part })
    }
    if (typeof said.stop_reason !== 'string') return events
    events.push({
      type: 'finish',
      finish: finishOf(said.stop_reason, this.#called),
      stopSequence: textOf(said.stop_sequence),
    })
    return events
  }
}

type PartBegin = Extract<NeutralEvent, { type: 'part' }>

function beginOfPart(part: number, { type, id, name }: JsonObject): PartBegin | null {
  if (type === 'text') return { type: 'part', part, kind: 'text' }
  if (type === 'thinking' || type === 'redacted_thinking') {
    return { type: 'part', part, kind: 'thought', language: 'messages' }
  }
  if (type !== 'tool_use') return null
  return { type: 'part', part, kind: 'tool_call', id: textOf(id) ?? '', name: textOf(name) ?? '' }
}

function signed({ part }: Block, signature: string | null, redacted: boolean): NeutralEvent[] {
  if (signature === null || signature === '' || isAltered(signature)) return []
  return [{ type: 'signature', part, signature, redacted, language: 'messages' }]
}

const abandoned = (event: NeutralEvent): NeutralEvent =>
  event.type === 'part_end' ? { ...event, abandoned: true } : event

/**
 * Follows a streamed answer of Gemini, which is a series of `GenerateContentResponse`s; a whole answer is one of
 * them. Texts continue over several responses; a function call is whole in one. Most models give calls no id: the
 * gateway builds one from the answer's id and the call's number, so reading an answer again gives the same ids.
 *
 * The language has no end marker: a stream is complete once a finish reason has come and the provider closed it.
 */

import type { FinishReason, NeutralAnswer, NeutralEvent } from '../../neutral.ts'
import { isGiven, isObject, type JsonObject, objectsOf, textOf } from '../../reading/json-value.ts'
import { collected } from '../../translation/collect-stream.ts'
import { argumentsText, frameObject, unusable } from '../../translation/translation-errors.ts'
import type { NeutralStreamReader } from '../../translation-language.ts'
import { finishOf, readGeminiError, readGeminiUsage } from '../answers.ts'

interface OpenPart {
  part: number
  kind: 'text' | 'thought'
}

/** A whole answer is the one response of a stream. Throws if it is not a response, or has no end. */
export function readGeminiAnswer(body: unknown): NeutralAnswer {
  const events = isObject(body) ? new GeminiStreamReader().response(body) : []
  const error = events.find((event) => event.type === 'error')
  if (error !== undefined) throw unusable(error.error.message)
  if (!events.some(({ type }) => type === 'finish')) throw unusable('The provider sent no finished answer')
  return collected(events)
}

export class GeminiStreamReader implements NeutralStreamReader {
  #begun = false
  #parts = 0
  #calls = 0
  #open: OpenPart | null = null
  #id: string | null = null
  #finish: FinishReason | null = null

  frame(_: string | null, data: string): readonly NeutralEvent[] {
    return this.response(frameObject(data))
  }

  end(): readonly NeutralEvent[] {
    return this.#finish === null ? [] : [{ type: 'end' }]
  }

  /** One response of the stream, parsed. */
  response(response: JsonObject): NeutralEvent[] {
    if (isObject(response.error)) return [{ type: 'error', error: readGeminiError(null, response) }]
    const events = this.#start(response)
    const [candidate] = objectsOf(response.candidates)
    if (candidate !== undefined) {
      const parts = isObject(candidate.content) ? objectsOf(candidate.content.parts) : []
      const sources = sourcesIn(candidate.citationMetadata)
      for (const part of parts) events.push(...this.#part(part, sources))
      events.push(...this.#cite(sources))
    }
    const usage = readGeminiUsage(response.usageMetadata)
    if (usage !== null) events.push({ type: 'usage', usage })
    const finish = finishOf(candidate, response.promptFeedback, this.#calls > 0)
    if (finish === null || this.#finish !== null) return events
    this.#finish = finish
    return [...events, ...this.#close(), { type: 'finish', finish, stopSequence: null }]
  }

  #start({ responseId, modelVersion }: JsonObject): NeutralEvent[] {
    if (this.#begun) return []
    this.#begun = true
    this.#id = textOf(responseId)
    return [{ type: 'start', id: this.#id, model: textOf(modelVersion) }]
  }

  /** `sources`: those of the text, which go out before it ends. A reader that takes one removes it. */
  #part(part: JsonObject, sources: JsonObject[]): NeutralEvent[] {
    const signature = textOf(part.thoughtSignature)
    if (isObject(part.functionCall)) return this.#call(part.functionCall, signature)
    if (isObject(part.inlineData)) {
      const message = 'The provider answered with media, which is not translated'
      return [{ type: 'error', error: { status: null, code: 'upstream_provider_error', message } }]
    }
    const text = textOf(part.text)
    if (text === null) return []
    const kind = part.thought === true ? 'thought' : 'text'
    const events = text === '' ? [] : this.#text(kind, text)
    if (signature === null) return events
    if (kind === 'thought') return [...events, ...this.#signThought(signature)]
    // A text's signature is a thought without words, which follows the text.
    return [...events, ...this.#cite(sources), ...this.#close(), ...this.#signThought(signature), ...this.#close()]
  }

  #text(kind: OpenPart['kind'], text: string): NeutralEvent[] {
    const events = this.#openPart(kind)
    if (this.#open !== null) events.push({ type: 'text', part: this.#open.part, text })
    return events
  }

  #signThought(signature: string): NeutralEvent[] {
    const events = this.#openPart('thought')
    if (this.#open === null) return events
    const { part } = this.#open
    return [...events, { type: 'signature', part, signature, redacted: false, language: 'gemini' }]
  }

  #openPart(kind: OpenPart['kind']): NeutralEvent[] {
    if (this.#open?.kind === kind) return []
    const events = this.#close()
    const part = this.#parts++
    this.#open = { part, kind }
    if (kind === 'text') return [...events, { type: 'part', part, kind }]
    return [...events, { type: 'part', part, kind, language: 'gemini' }]
  }

  #close(): NeutralEvent[] {
    if (this.#open === null) return []
    const { part } = this.#open
    this.#open = null
    return [{ type: 'part_end', part }]
  }

  #call(call: JsonObject, signature: string | null): NeutralEvent[] {
    const events = this.#close()
    const part = this.#parts++
    const name = textOf(call.name) ?? ''
    if (isGiven(call.partialArgs) || call.willContinue === true) {
      throw unusable('The provider sent arguments in parts, which were not asked for')
    }
    const text = argumentsText(call.args)
    const id = textOf(call.id) ?? this.#callId(name, text)
    this.#calls++
    events.push({ type: 'part', part, kind: 'tool_call', id, name })
    if (signature !== null) {
      events.push({ type: 'signature', part, signature, redacted: false, language: 'gemini' })
    }
    events.push({ type: 'text', part, text }, { type: 'part_end', part })
    return events
  }

  /** Call ids of an answer without an id are derived from the call itself. */
  #callId(name: string, args: string): string {
    const answer = this.#id ?? Bun.hash(name + args).toString(36)
    return `call_${answer.replace(/[^\w-]/g, '_')}_${this.#calls}`
  }

  #cite(sources: JsonObject[]): NeutralEvent[] {
    const open = this.#open
    if (open?.kind !== 'text') return []
    return sources.splice(0).map((source) => ({
      type: 'citation',
      part: open.part,
      citation: { title: textOf(source.title), url: textOf(source.uri), citedText: null, original: source },
    }))
  }
}

/** The Gemini API has `citationSources`, Vertex AI `citations`, with a title (CitationMetadata of either). */
const sourcesIn = (metadata: unknown): JsonObject[] =>
  isObject(metadata) ? [...objectsOf(metadata.citationSources ?? metadata.citations)] : []

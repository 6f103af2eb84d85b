/**
 * Writes the chunks of a streamed chat completion. Thoughts go out as `reasoning_content`. The `reasoning_details`
 * entry of a thought follows when its signature has come (`reasoning.ts`). Annotations follow when their text is
 * complete, because they give its end.
 */
import type { Usage } from '../../dialect.ts'
import type { FinishReason, LanguageName, NeutralCitation, NeutralEvent, NeutralPart } from '../../neutral.ts'
import { doneFrame } from '../../reading/frames/done-marker.ts'
import type { JsonObject } from '../../reading/json-value.ts'
import { plainId, startedAt } from '../../reading/request-fields.ts'
import { writeOpenAiError } from '../../translation/openai-shared.ts'
import { ownOpaque } from '../../translation/signature.ts'
import { failed } from '../../translation/translation-errors.ts'
import type { AnswerStart, NeutralStreamWriter } from '../../translation-language.ts'
import { annotationOf } from './annotations.ts'
import { reasonOf, writeUsage } from './answers.ts'
import { betweenThoughts, callSignatureMember, detailOf, thoughtMember } from './reasoning.ts'

interface Part {
  kind: NeutralPart['kind']
  /** For a call: its number among the calls. */
  call: number
  /** The offset of a text in the content. */
  begins: number
  text: string
  citations: NeutralCitation[]
  /** For a thought: its language, until its entry of `reasoning_details` has gone out. */
  unsigned: LanguageName | null
}

type Event<Type extends NeutralEvent['type']> = NeutralEvent & { type: Type }

export class ChatStreamWriter implements NeutralStreamWriter {
  readonly #asked: AnswerStart
  readonly #parts = new Map<number, Part>()
  #head: JsonObject | null = null
  #model: string
  #length = 0
  #calls = 0
  #thought = false
  #usage: Usage | null = null

  constructor(asked: AnswerStart) {
    this.#asked = asked
    this.#model = asked.model
  }

  event(event: NeutralEvent): string {
    if (event.type === 'start') return this.#start(event)
    if (event.type === 'part') return this.#begin(event)
    if (event.type === 'text') return this.#text(event)
    if (event.type === 'signature') return this.#signature(event)
    if (event.type === 'citation') this.#parts.get(event.part)?.citations.push(event.citation)
    if (event.type === 'part_end') return this.#end(this.#parts.get(event.part))
    if (event.type === 'usage') this.#usage = event.usage
    if (event.type === 'finish') return this.#finish(event.finish)
    if (event.type === 'error') return `${frame(writeOpenAiError(event.error))}${doneFrame}`
    return event.type === 'end' ? `${this.#usageFrame()}${doneFrame}` : ''
  }

  #start({ model }: Event<'start'>): string {
    this.#model = model ?? this.#asked.model
    return this.#delta({ role: 'assistant', content: '', refusal: null })
  }

  #begin(event: Event<'part'>): string {
    const { kind } = event
    const unsigned = kind === 'thought' && event.language !== 'chat' ? event.language : null
    const part: Part = { kind, call: this.#calls, begins: this.#length, text: '', citations: [], unsigned }
    this.#parts.set(event.part, part)
    if (kind !== 'tool_call') return ''
    this.#calls++
    const called = { name: event.name, arguments: '' }
    return this.#delta({ tool_calls: [{ index: part.call, id: event.id, type: 'function', function: called }] })
  }

  #text({ part: number, text }: Event<'text'>): string {
    const part = this.#parts.get(number)
    if (part === undefined) return ''
    if (part.kind === 'tool_call') {
      return this.#delta({ tool_calls: [{ index: part.call, function: { arguments: text } }] })
    }
    if (part.kind === 'refusal') return this.#delta({ refusal: text })
    if (part.kind === 'thought') {
      const isNext = this.#thought && part.text === ''
      part.text += text
      this.#thought = true
      return this.#delta({ [thoughtMember]: isNext ? betweenThoughts + text : text })
    }
    this.#length += text.length
    return this.#delta({ content: text })
  }

  #signature({ part: number, signature, redacted, language }: Event<'signature'>): string {
    const part = this.#parts.get(number)
    if (part === undefined) return ''
    if (part.kind === 'tool_call') {
      // Clients that check each chunk (the AI SDK, and opencode with it) refuse a call without `function`.
      const call = { index: part.call, function: { arguments: '' } }
      return this.#delta({ tool_calls: [{ ...call, ...callSignatureMember({ text: signature, language }) }] })
    }
    part.unsigned = null
    return this.#delta({ reasoning_details: [detailOf(part.text, ownOpaque(signature, language, redacted))] })
  }

  /** Annotations give the end of their text; a thought that another provider did not sign must name its language. */
  #end(part: Part | undefined): string {
    if (part === undefined) return ''
    const { unsigned } = part
    part.unsigned = null
    if (unsigned === null || part.text === '') return this.#annotations(part)
    return this.#delta({ reasoning_details: [detailOf(part.text, ownOpaque(null, unsigned, false))] })
  }

  #annotations(part: Part): string {
    if (part.citations.length === 0) return ''
    const range = { start: part.begins, end: this.#length }
    const annotations = part.citations.map((citation) => annotationOf(citation, range))
    part.citations = []
    return this.#delta({ annotations })
  }

  #finish(finish: FinishReason): string {
    if (finish === 'error') return `${frame(writeOpenAiError(failed))}${doneFrame}`
    const kinds = [...this.#parts.values()]
    return kinds.map((part) => this.#end(part)).join('') + this.#delta({}, reasonOf(finish, kinds))
  }

  #usageFrame(): string {
    if (!this.#asked.includeUsage || this.#usage === null) return ''
    return frame({ ...this.#common(), choices: [], usage: writeUsage(this.#usage) })
  }

  #delta(delta: JsonObject, reason: string | null = null): string {
    const choices = [{ index: 0, delta, logprobs: null, finish_reason: reason }]
    return frame({ ...this.#common(), choices, ...(this.#asked.includeUsage && noUsage) })
  }

  #common(): JsonObject {
    const { exchangeId } = this.#asked
    this.#head ??= {
      id: `chatcmpl-${plainId(exchangeId)}`,
      object: 'chat.completion.chunk',
      created: startedAt(exchangeId),
      model: this.#model,
    }
    return this.#head
  }
}

/** If the caller asked for usage, every chunk but the last one has a null `usage` (`stream_options.include_usage`). */
const noUsage = { usage: null }

const frame = (data: JsonObject): string => `data: ${JSON.stringify(data)}\n\n`

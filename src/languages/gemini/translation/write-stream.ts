/**
 * Writes a streamed answer as Gemini's responses. A call is whole in one response, so its arguments are collected until
 * it ends. The finish reason and the usage are in the last response, which goes out at the end, because some providers
 * report usage after the finish.
 */
import type { Usage } from '../../dialect.ts'
import type { CallSignature, FinishReason, LanguageName, NeutralCitation, NeutralEvent } from '../../neutral.ts'
import type { JsonObject } from '../../reading/json-value.ts'
import { ownOpaque, writtenOpaque } from '../../translation/signature.ts'
import { failed } from '../../translation/translation-errors.ts'
import type { AnswerStart, NeutralStreamWriter } from '../../translation-language.ts'
import { writeGeminiError } from '../error.ts'
import {
  callPart,
  citationMember,
  finishReasons,
  headOf,
  refuseUnlessCut,
  showsThoughts,
  usageMember,
} from './write-answer.ts'

interface Part {
  begin: Event<'part'>
  /** For a call: the arguments so far. */
  arguments: string
  signature: CallSignature | null
  /** For a thought: its language, until its signature has gone out. */
  unsigned: LanguageName | null
  /** A call whose arguments are no object: the finish reason decides whether they were cut off. */
  broken: boolean
}

type Event<Type extends NeutralEvent['type']> = NeutralEvent & { type: Type }

export class GeminiStreamWriter implements NeutralStreamWriter {
  /** Some of Google's clients take every line for data. */
  readonly keepOpen = ''
  readonly #asked: AnswerStart
  readonly #shows: boolean
  readonly #parts = new Map<number, Part>()
  #head: JsonObject
  readonly #citations: NeutralCitation[] = []
  #usage: Usage | null = null
  #finish: FinishReason = 'error'

  constructor(asked: AnswerStart) {
    this.#asked = asked
    this.#shows = showsThoughts(asked)
    this.#head = headOf({ id: null, model: null }, asked)
  }

  event(event: NeutralEvent): string {
    if (event.type === 'start') this.#head = headOf(event, this.#asked)
    if (event.type === 'part') this.#begin(event)
    if (event.type === 'text') return this.#text(event)
    if (event.type === 'signature') return this.#sign(event)
    if (event.type === 'part_end') return this.#endPart(event)
    if (event.type === 'citation') this.#citations.push(event.citation)
    if (event.type === 'usage') this.#usage = event.usage
    if (event.type === 'finish') this.#finish = event.finish
    if (event.type === 'error') return frame(writeGeminiError(event.error))
    return event.type === 'end' ? this.#end() : ''
  }

  #begin(begin: Event<'part'>): void {
    const unsigned = begin.kind === 'thought' && begin.language !== 'gemini' ? begin.language : null
    this.#parts.set(begin.part, { begin, arguments: '', signature: null, unsigned, broken: false })
  }

  #text({ part: number, text }: Event<'text'>): string {
    const part = this.#parts.get(number)
    if (part === undefined || text === '') return ''
    const { kind } = part.begin
    if (kind === 'tool_call') part.arguments += text
    if (kind === 'tool_call' || (kind === 'thought' && !this.#shows)) return ''
    return this.#response({ text, ...(kind === 'thought' && { thought: true }) })
  }

  #sign({ part: number, signature, redacted, language }: Event<'signature'>): string {
    const part = this.#parts.get(number)
    if (part === undefined) return ''
    if (part.begin.kind === 'tool_call') part.signature = { text: signature, language }
    if (part.begin.kind !== 'thought' || !this.#shows) return ''
    part.unsigned = null
    const thoughtSignature = writtenOpaque(ownOpaque(signature, language, redacted), 'gemini')
    return this.#response({ text: '', thought: true, thoughtSignature })
  }

  #endPart({ part: number, abandoned }: Event<'part_end'>): string {
    const part = this.#parts.get(number)
    if (part === undefined) return ''
    this.#parts.delete(number)
    const { begin, signature, unsigned } = part
    if (begin.kind === 'thought' && unsigned !== null && this.#shows) {
      const thoughtSignature = writtenOpaque(ownOpaque(null, unsigned, false), 'gemini')
      return this.#response({ text: '', thought: true, thoughtSignature })
    }
    if (begin.kind !== 'tool_call' || abandoned) return ''
    const { id, name } = begin
    const call = callPart({ id, name, arguments: part.arguments, ...(signature !== null && { signature }) })
    if (call !== null) return this.#response(call)
    this.#parts.set(number, { ...part, broken: true })
    return ''
  }

  /** Parts without an end are ended with the answer. */
  #end(): string {
    if (this.#finish === 'error') return frame(writeGeminiError(failed))
    let text = ''
    for (const [part, { broken }] of [...this.#parts]) if (!broken) text += this.#endPart({ type: 'part_end', part })
    if (this.#parts.size > 0) refuseUnlessCut(this.#finish)
    const members = { finishReason: finishReasons[this.#finish], ...citationMember(this.#citations) }
    return text + this.#response({ text: '' }, members, usageMember(this.#usage))
  }

  #response(part: JsonObject, members: JsonObject = {}, more: JsonObject = {}): string {
    const candidate = { content: { parts: [part], role: 'model' }, ...members, index: 0 }
    return frame({ candidates: [candidate], ...more, ...this.#head })
  }
}

const frame = (data: JsonObject): string => `data: ${JSON.stringify(data)}\n\n`

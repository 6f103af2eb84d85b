/**
 * Writes a streamed answer as Anthropic's message events. Its blocks follow one another, while parts of other
 * languages may run in parallel:
 *
 * - A text or a thought ends when another part interrupts it; the rest of it becomes a further block, since clients
 *   join texts anyway.
 * - A tool call cannot be continued in another block. While one is open, events of other parts wait until it ends,
 *   and a call waits for calls that began before it.
 * - A call or a thought begins with its first text, because a signature before it decides its form: a call's
 *   signature goes into a block before it (`languages/translation/signature.ts`), hidden thinking into a block of
 *   another type.
 *
 * The stop reason, the usage and the text of a refusal are one event at the end.
 */
import type { Usage } from '../../dialect.ts'
import type { NeutralCitation, NeutralEvent } from '../../neutral.ts'
import type { JsonObject } from '../../reading/json-value.ts'
import { ownOpaque, writtenOpaque } from '../../translation/signature.ts'
import { failed } from '../../translation/translation-errors.ts'
import type { AnswerStart, NeutralStreamWriter } from '../../translation-language.ts'
import {
  beginOf,
  callSignatureBlock,
  inputOf,
  refusalDetails,
  refuseUnlessCut,
  stopReasonOf,
  usageOf,
  writeMessagesError,
  writtenCitation,
} from './answers.ts'

type PartBegin = Extract<NeutralEvent, { type: 'part' }>
type PartEvent = Exclude<Extract<NeutralEvent, { part: number }>, PartBegin>
type SignatureEvent = Extract<NeutralEvent, { type: 'signature' }>
type Finish = Extract<NeutralEvent, { type: 'finish' }>

interface Part {
  begin: PartBegin
  /** Events that wait for this part's turn. */
  waiting: PartEvent[]
  /** For a call: the arguments so far. */
  arguments: string
  /** A block of it was written. */
  written: boolean
  signed: boolean
  ended: boolean
  abandoned: boolean
}

export class MessagesStreamWriter implements NeutralStreamWriter {
  readonly #asked: AnswerStart
  readonly #parts = new Map<number, Part>()
  /** The part with the open block; a call's block stays open until the call has ended. */
  #open: Part | null = null
  #blocks = 0
  #begun = false
  #usage: Usage | null = null
  #finish: Finish | null = null
  #refusal = ''
  #out = ''

  constructor(asked: AnswerStart) {
    this.#asked = asked
  }

  event(event: NeutralEvent): string {
    this.#out = ''
    if (event.type === 'start') this.#start(event)
    else if (event.type === 'usage') this.#usage = event.usage
    else if (event.type === 'finish') this.#finish = event
    else if (event.type === 'error') this.#write('error', writeMessagesError(event.error))
    else if (event.type === 'end') this.#end()
    else if (event.type === 'part') this.#parts.set(event.part, newPart(event))
    else this.#take(event)
    return this.#out
  }

  #write(type: string, event: JsonObject): void {
    this.#out += `event: ${type}\ndata: ${JSON.stringify({ type, ...event })}\n\n`
  }

  #start({ id, model }: { id: string | null; model: string | null }): void {
    if (this.#begun) return
    this.#begun = true
    this.#write('message_start', { message: beginOf({ id, model }, this.#asked) })
  }

  #take(event: PartEvent): void {
    const part = this.#parts.get(event.part)
    if (part === undefined || part.ended) return
    if (part.begin.kind === 'refusal') {
      if (event.type === 'text') this.#refusal += event.text
      return
    }
    if (this.#waitsFor(part)) part.waiting.push(event)
    else this.#pass(part, event)
  }

  /**
   * Whether a call is open, or an earlier one has not been written yet: calls are written in the order in which they
   * began.
   */
  #waitsFor(part: Part): boolean {
    const open = this.#open?.begin.kind === 'tool_call' ? this.#open : null
    if (open !== null || part.begin.kind !== 'tool_call') return open !== null && open !== part
    for (const earlier of this.#parts.values()) {
      if (earlier === part) return false
      if (earlier.begin.kind === 'tool_call' && !earlier.ended) return true
    }
    return false
  }

  #pass(part: Part, event: PartEvent): void {
    if (event.type === 'part_end') {
      part.abandoned = event.abandoned === true
      this.#endPart(part)
    } else if (event.type === 'signature') this.#sign(part, event)
    else {
      this.#openBlock(part)
      if (event.type === 'text' && part.begin.kind === 'tool_call') part.arguments += event.text
      if (event.type === 'text') this.#delta(textDelta(part.begin, event.text))
      else this.#cite(event.citation)
    }
  }

  #cite(given: NeutralCitation): void {
    const citation = writtenCitation(given)
    if (citation !== null) this.#delta({ type: 'citations_delta', citation })
  }

  #sign(part: Part, event: SignatureEvent): void {
    const { signature, redacted, language } = event
    part.signed = true
    if (part.begin.kind === 'tool_call') {
      // A late signature would have to interrupt the call. Its position does not matter, because it names the call's
      // id.
      if (this.#open === part) part.waiting.push(event)
      else this.#writeBlock(callSignatureBlock(part.begin.id, { text: signature, language }))
      return
    }
    const opaque = writtenOpaque(ownOpaque(signature, language, redacted), 'messages')
    if (redacted) {
      this.#writeBlock({ type: 'redacted_thinking', data: opaque })
      part.written = true
    } else if (part.begin.kind === 'thought') {
      this.#openBlock(part)
      this.#delta({ type: 'signature_delta', signature: opaque })
    }
  }

  /** A thought that its provider did not sign names its language, if that is another one. */
  #signUnsigned({ begin, signed }: Part): void {
    if (begin.kind !== 'thought' || signed) return
    const opaque = writtenOpaque(ownOpaque(null, begin.language, false), 'messages')
    if (opaque !== null) this.#delta({ type: 'signature_delta', signature: opaque })
  }

  #delta(delta: JsonObject): void {
    this.#write('content_block_delta', { index: this.#blocks - 1, delta })
  }

  /** A block that is whole at once. */
  #writeBlock(block: JsonObject): void {
    this.#closeBlock()
    this.#start({ id: null, model: null })
    const index = this.#blocks++
    const { signature, ...unsigned } = block
    const isSigned = block.type === 'thinking'
    this.#write('content_block_start', { index, content_block: isSigned ? { ...unsigned, signature: '' } : block })
    if (isSigned) this.#write('content_block_delta', { index, delta: { type: 'signature_delta', signature } })
    this.#write('content_block_stop', { index })
  }

  #openBlock(part: Part): void {
    if (this.#open === part) return
    this.#closeBlock()
    this.#start({ id: null, model: null })
    this.#open = part
    part.written = true
    this.#write('content_block_start', { index: this.#blocks++, content_block: beginOfBlock(part.begin) })
  }

  #closeBlock(): void {
    if (this.#open === null) return
    this.#signUnsigned(this.#open)
    this.#open = null
    this.#write('content_block_stop', { index: this.#blocks - 1 })
  }

  #endPart(part: Part): void {
    if (!part.written && part.begin.kind === 'tool_call') this.#openBlock(part)
    part.ended = true
    if (this.#open !== part) return
    this.#closeBlock()
    for (const late of part.waiting) {
      if (late.type === 'signature' && part.begin.kind === 'tool_call') {
        this.#writeBlock(callSignatureBlock(part.begin.id, { text: late.signature, language: late.language }))
      }
    }
    part.waiting = []
    if (part.begin.kind === 'tool_call') this.#passWaiting()
  }

  /** Writes the waiting parts, in their order, up to a call that has not ended. */
  #passWaiting(): void {
    for (const part of this.#parts.values()) {
      if (this.#open?.begin.kind === 'tool_call') return
      const waiting = part.waiting
      part.waiting = []
      for (const event of waiting) this.#take(event)
    }
  }

  /**
   * Parts without an end are ended with the answer. A failed answer ends with its error alone, as Anthropic's own do.
   */
  #end(): void {
    const { finish, stopSequence } = this.#finish ?? { finish: 'error', stopSequence: null }
    if (finish === 'error') {
      this.#write('error', writeMessagesError(failed))
      return
    }
    for (const [number, part] of this.#parts) {
      if (!part.ended) this.#take({ type: 'part_end', part: number })
    }
    this.#closeBlock()
    this.#start({ id: null, model: null })
    for (const { abandoned, arguments: given } of this.#parts.values()) {
      if (!abandoned && inputOf(given) === null) refuseUnlessCut(finish)
    }
    this.#write('message_delta', {
      delta: {
        stop_reason: stopReasonOf(finish, stopSequence),
        stop_sequence: stopSequence,
        ...(this.#refusal !== '' && { stop_details: refusalDetails(this.#refusal) }),
      },
      usage: usageOf(this.#usage),
    })
    this.#write('message_stop', {})
  }
}

const newPart = (begin: PartBegin): Part => ({
  begin,
  waiting: [],
  arguments: '',
  written: false,
  signed: false,
  ended: false,
  abandoned: false,
})

function beginOfBlock(begin: PartBegin): JsonObject {
  if (begin.kind === 'tool_call') return { type: 'tool_use', id: begin.id, name: begin.name, input: {} }
  if (begin.kind === 'thought') return { type: 'thinking', thinking: '', signature: '' }
  return { type: 'text', text: '' }
}

function textDelta({ kind }: PartBegin, text: string): JsonObject {
  if (kind === 'tool_call') return { type: 'input_json_delta', partial_json: text }
  return kind === 'thought' ? { type: 'thinking_delta', thinking: text } : { type: 'text_delta', text }
}

/**
 * Follows a provider's stream of chat completion chunks. Text, thoughts and a refusal are one part each until another
 * begins; calls continue in parallel until the choice finishes. Content in parts (`spoken-parts.ts`) is read thoughts
 * first. A call's name may come in pieces, so its part begins
 * with its arguments. The stream is complete with `[DONE]`; some providers leave that out and just close.
 */

import type { NeutralEvent, NeutralPart } from '../../neutral.ts'
import { isDone } from '../../reading/frames/done-marker.ts'
import { isGiven, isObject, type JsonObject, objectsOf, textOf } from '../../reading/json-value.ts'
import { readOpenAiError } from '../../translation/openai-shared.ts'
import { frameObject } from '../../translation/translation-errors.ts'
import type { NeutralStreamReader } from '../../translation-language.ts'
import { readUsage } from '../answer.ts'
import { type Call, ChatCalls } from '../tool-calls.ts'
import { annotationsIn } from './annotations.ts'
import { finishOf, refuseRetiredCall } from './answers.ts'
import { callSignatureIn, plainThought } from './reasoning.ts'
import { spokenParts, textOfKind } from './spoken-parts.ts'

type Words = 'text' | 'thought' | 'refusal'

/** A call whose part has begun, or that waits for its complete name. */
interface Followed {
  part: number | null
  signature: string | null
}

export class ChatStreamReader implements NeutralStreamReader {
  #events: NeutralEvent[] = []
  #parts = 0
  /** The open part of words; null if there is none. */
  #open: { part: number; kind: Words } | null = null
  readonly #kinds: Pick<NeutralPart, 'kind'>[] = []
  readonly #calls = new ChatCalls()
  readonly #followed = new Map<Call, Followed>()
  #started = false
  #finished = false
  #ended = false

  frame(_event: string | null, data: string): readonly NeutralEvent[] {
    this.#events = []
    if (this.#ended) return this.#events
    if (isDone(data)) return this.end()
    const chunk = frameObject(data)
    if (isGiven(chunk.error)) return this.#fail(chunk)
    this.#start(chunk)
    for (const choice of objectsOf(chunk.choices)) this.#choice(choice)
    const usage = readUsage(chunk.usage, chunk.service_tier)
    if (usage !== null) this.#events.push({ type: 'usage', usage })
    return this.#events
  }

  end(): readonly NeutralEvent[] {
    this.#events = []
    if (this.#ended || !this.#finished) return this.#events
    this.#ended = true
    this.#events.push({ type: 'end' })
    return this.#events
  }

  #fail(chunk: JsonObject): readonly NeutralEvent[] {
    this.#ended = true
    this.#events.push({ type: 'error', error: readOpenAiError(null, chunk) })
    return this.#events
  }

  /** A first chunk may hold only a filter's result for the prompt. */
  #start({ id, model, choices }: JsonObject): void {
    if (this.#started || (!textOf(id) && objectsOf(choices).length === 0)) return
    this.#started = true
    this.#events.push({ type: 'start', id: textOf(id), model: textOf(model) || null })
  }

  #choice({ delta, finish_reason: reason }: JsonObject): void {
    if (isObject(delta)) {
      refuseRetiredCall(delta)
      this.#thoughts(delta)
      const spoken = spokenParts(delta.content)
      this.#words('thought', textOfKind(spoken, 'thought'))
      this.#words('text', textOfKind(spoken, 'text'))
      this.#words('refusal', textOfKind(spoken, 'refusal'))
      this.#words('refusal', textOf(delta.refusal))
      const open = this.#open
      if (open?.kind === 'text') {
        for (const citation of annotationsIn(delta.annotations)) {
          this.#events.push({ type: 'citation', part: open.part, citation })
        }
      }
      for (const [position, element] of objectsOf(delta.tool_calls).entries()) this.#call(element, position)
    }
    const finish = textOf(reason)
    if (finish !== null && finish !== '' && finish !== 'null' && !this.#finished) this.#finish(finish)
  }

  #thoughts(delta: JsonObject): void {
    const plain = plainThought(delta)
    this.#words('thought', plain)
    for (const detail of objectsOf(delta.reasoning_details)) {
      const hidden = textOf(detail.data)
      const signature = hidden ?? textOf(detail.signature)
      // The text of a detail repeats the plain text, if the provider sends both.
      const repeated = plain !== null || this.#kinds.some(({ kind }) => kind === 'thought')
      if (hidden === null && !repeated) this.#words('thought', textOf(detail.text) ?? textOf(detail.summary))
      if (signature === null) continue
      if (hidden !== null || this.#open?.kind !== 'thought') this.#begin('thought')
      const part = this.#open?.part ?? 0
      this.#events.push({ type: 'signature', part, signature, redacted: hidden !== null, language: 'chat' })
      if (hidden !== null) this.#close()
    }
  }

  #words(kind: Words, text: string | null): void {
    if (text === null || text === '') return
    if (this.#open?.kind !== kind) this.#begin(kind)
    this.#events.push({ type: 'text', part: this.#open?.part ?? 0, text })
  }

  #begin(kind: Words): void {
    this.#close()
    this.#open = { part: this.#next(kind), kind }
    const { part } = this.#open
    this.#events.push(
      kind === 'thought' ? { type: 'part', part, kind, language: 'chat' } : { type: 'part', part, kind },
    )
  }

  #next(kind: NeutralPart['kind']): number {
    this.#kinds.push({ kind })
    return this.#parts++
  }

  #close(): void {
    if (this.#open !== null) this.#events.push({ type: 'part_end', part: this.#open.part })
    this.#open = null
  }

  #call(element: JsonObject, position: number): void {
    this.#close()
    const { call, before } = this.#calls.take(element, position)
    if (before !== null) this.#beginCall(before)
    const followed = this.#follow(call)
    followed.signature = callSignatureIn(element) ?? followed.signature
    const text = isObject(element.function) ? textOf(element.function.arguments) : null
    if (text === null || text === '') return
    call.end = text.trimEnd().at(-1) ?? call.end
    this.#events.push({ type: 'text', part: this.#beginCall(call), text })
  }

  #follow(call: Call): Followed {
    const known = this.#followed.get(call)
    if (known !== undefined) return known
    const followed: Followed = { part: null, signature: null }
    this.#followed.set(call, followed)
    return followed
  }

  #beginCall(call: Call): number {
    const followed = this.#follow(call)
    if (followed.part !== null) return followed.part
    // Calls that wait for their names are kept in the order in which they came.
    for (const [earlier, { part }] of this.#followed) {
      if (earlier === call) break
      if (part === null) this.#beginCall(earlier)
    }
    followed.part = this.#next('tool_call')
    const id = call.id ?? `call_${followed.part}`
    this.#events.push({ type: 'part', part: followed.part, kind: 'tool_call', id, name: call.name })
    return followed.part
  }

  #finish(reason: string): void {
    this.#close()
    for (const [call, followed] of this.#followed) {
      const part = this.#beginCall(call)
      const { signature } = followed
      if (signature !== null) {
        this.#events.push({ type: 'signature', part, signature, redacted: false, language: 'chat' })
      }
      this.#events.push({ type: 'part_end', part })
    }
    this.#finished = true
    this.#events.push({ type: 'finish', finish: finishOf(reason, this.#kinds), stopSequence: null })
  }
}

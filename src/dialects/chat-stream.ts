/**
 * Follows a stream of chat completion chunks. A channel is one field of one choice, `0/content`; it ends with the
 * choice's `finish_reason`, or with the stream. Fields that nobody has heard of are channels like the others.
 *
 * Calls of tools that a provider does not number go on by their position, until another id stands there. A tool's name
 * comes whole, and clients take it whole: one that comes in parts all the same is read with what came of it before, so
 * that the last part is stopped; what it is made of has gone by then.
 */
import { envelope } from '../failure.ts'
import type { SseFrame } from '../lib/sse.ts'
import { generatedLength, readUsage } from './chat-answer.ts'
import type { FrameFacts, FrameText, SseFrameText, StreamReader, StreamStart, Usage } from './dialect.ts'
import { endChannels } from './end-channels.ts'
import { plainId, startedAt } from './facts.ts'
import { errorCode, isGiven, isObject, type JsonObject, objectsOf, parseObject, textOf } from './json-value.ts'
import { endingFrame, frameBytes, OpenFrame, plainFrame } from './open-frame.ts'
import { type FoundText, objectWith, textsIn } from './texts.ts'

/** What a frame holds that is there for the usage alone. */
const ofUsageFrame: ReadonlySet<string> = new Set([
  ...['id', 'object', 'created', 'model', 'choices', 'usage', 'system_fingerprint', 'service_tier', 'obfuscation'],
])

const done = '[DONE]'
const doneFrame = new TextEncoder().encode(`data: ${done}\n\n`)

/** The choices are read one by one. */
const readApart: ReadonlySet<string> = new Set(['choices'])
const deltaOnly: ReadonlySet<string> = new Set(['delta'])

const unnumberedCall = /^tool_calls#\d+/
/** More than any tool's. */
const longestName = 1024

interface Channel {
  choice: number
  place: string
  ended: boolean
}

class ChatReader implements StreamReader {
  readonly #start: StreamStart
  readonly #channels = new Map<string, Channel>()
  readonly #openChoices = new Set<number>()
  /** What came of each name. */
  readonly #names = new Map<string, string>()
  /** The calls that are not numbered, by choice and position: the latest id there, and how many were before it. */
  readonly #unnumbered = new Map<string, { id: string | null; before: number }>()
  #usage: Usage | null = null
  /** The frame last followed, parsed: it is opened next, if at all. */
  #chunk: JsonObject | null = null
  /** What the provider's chunks say of the answer as a whole. */
  #head: JsonObject | null = null

  constructor(start: StreamStart) {
    this.#start = start
  }

  frame({ data }: SseFrameText): FrameFacts {
    const chunk = data === done ? null : parseObject(data)
    this.#chunk = chunk
    if (chunk === null) return { terminal: data === done, textLength: 0, usage: this.#usage, error: null, ours: false }
    if (isGiven(chunk.error)) {
      return { terminal: true, textLength: 0, usage: this.#usage, error: errorCode(chunk.error), ours: false }
    }
    // A first chunk may have nothing but what a filter says of the prompt, and no name of its own.
    if (this.#head === null && textOf(chunk.id)) this.#head = chunk
    for (const [position, choice] of objectsOf(chunk.choices).entries()) {
      const index = indexOf(choice, position)
      if (isFinished(choice)) this.#openChoices.delete(index)
      else this.#openChoices.add(index)
    }
    const usage = readUsage(chunk.usage)
    if (usage !== null) this.#usage = usage
    const onlyUsage = isObject(chunk.usage) && Array.isArray(chunk.choices) && chunk.choices.length === 0
    const saysMore = Object.keys(chunk).some((name) => !ofUsageFrame.has(name))
    return {
      terminal: false,
      textLength: generatedLength(chunk.choices, 'delta'),
      usage: this.#usage,
      error: null,
      ours: onlyUsage && !saysMore && this.#start.usageAdded,
    }
  }

  open(frame: SseFrame): FrameText | null {
    const { data } = frame
    if (data === null) return null
    if (data === done) return endingFrame(frame, this.#end(null))
    const chunk = this.#chunk
    if (chunk === null) return plainFrame(frame, data)
    const opened = new OpenFrame(frame, chunk)
    for (const [position, choice] of objectsOf(chunk.choices).entries()) this.#openChoice(opened, choice, position)
    for (const found of textsIn(chunk, { except: readApart })) opened.add(found, found.place, true)
    if (isGiven(chunk.error)) opened.ends.push(...this.#end(null))
    return opened
  }

  #openChoice(opened: OpenFrame, choice: JsonObject, position: number): void {
    const index = indexOf(choice, position)
    if (isGiven(choice.logprobs)) {
      choice.logprobs = null
      opened.changed()
    }
    if (isObject(choice.delta)) this.#openDelta(opened, choice.delta, index)
    for (const found of textsIn(choice, { except: deltaOnly })) {
      opened.add(found, `${index}/choice/${found.place}`, true)
    }
    if (isFinished(choice)) opened.ends.push(...this.#end(index))
  }

  #openDelta(opened: OpenFrame, delta: JsonObject, index: number): void {
    this.#followUnnumbered(opened, delta, index)
    for (const found of textsIn(delta, { joinParts: true })) {
      const channel = this.#channelOf(index, found.place)
      if (!found.alone) this.#learn(channel, index, found.place)
      opened.add(found.kind === 'name' ? this.#withEarlier(found, channel) : found, channel, found.alone)
    }
  }

  /** Ends what a call without a number has said where another one takes its position. */
  #followUnnumbered(opened: OpenFrame, { tool_calls: calls }: JsonObject, index: number): void {
    if (!Array.isArray(calls)) return
    for (const [position, call] of calls.entries()) {
      if (!isObject(call) || Number.isSafeInteger(call.index)) continue
      const place = `${index}/tool_calls#${position}`
      const known = this.#unnumbered.get(place)
      const id = textOf(call.id) || null
      if (known === undefined) this.#unnumbered.set(place, { id, before: 0 })
      else if (id !== null && known.id === null) known.id = id
      else if (id !== null && id !== known.id) {
        const beginning = `${this.#channelOf(index, `tool_calls#${position}`)}/`
        opened.ends.push(...endChannels(this.#channels, (_, name) => name.startsWith(beginning)))
        this.#unnumbered.set(place, { id, before: known.before + 1 })
      }
    }
  }

  #channelOf(index: number, place: string): string {
    const call = unnumberedCall.exec(place)?.[0]
    const before = call === undefined ? 0 : (this.#unnumbered.get(`${index}/${call}`)?.before ?? 0)
    return before === 0 ? `${index}/${place}` : `${index}/${call}.${before}${place.slice(call?.length)}`
  }

  /** A name with what came of it before; one that is only said again is not. */
  #withEarlier(found: FoundText, channel: string): FoundText {
    const earlier = this.#names.get(channel) ?? ''
    if (earlier === found.text) return found
    const text = `${earlier}${found.text}`.slice(-longestName)
    this.#names.set(channel, text)
    return { ...found, text }
  }

  #learn(channel: string, choice: number, place: string): void {
    if (!this.#channels.has(channel)) this.#channels.set(channel, { choice, place, ended: false })
  }

  /** Ends a choice's channels, or all; gives those that had not ended. */
  #end(choice: number | null): string[] {
    return endChannels(this.#channels, (channel) => choice === null || channel.choice === choice)
  }

  delta(channel: string, text: string): Uint8Array {
    const known = this.#channels.get(channel)
    if (known === undefined) throw new RangeError('No frame has shown this channel')
    return this.#chunkOfOurs([{ index: known.choice, delta: objectWith(known.place, text), finish_reason: null }])
  }

  #chunkOfOurs(choices: readonly JsonObject[], more: JsonObject = {}): Uint8Array {
    const { exchangeId, model } = this.#start
    const head = this.#head ?? {}
    return frameBytes({
      id: textOf(head.id) ?? `chatcmpl-${plainId(exchangeId)}`,
      object: 'chat.completion.chunk',
      created: head.created ?? startedAt(exchangeId),
      model: textOf(head.model) ?? model,
      choices,
      ...more,
    })
  }

  errorFrames: StreamReader['errorFrames'] = (failure, requestId) =>
    Buffer.concat([frameBytes(envelope(failure, requestId)), doneFrame])

  endFrames = (): Uint8Array => doneFrame

  escalationFrames: StreamReader['escalationFrames'] = (verdictan, begun) => {
    const waiting = begun && this.#openChoices.size > 0 ? [...this.#openChoices] : [0]
    const delta = begun ? {} : { role: 'assistant', content: null }
    const choices = waiting.map((index) => ({ index, delta, logprobs: null, finish_reason: 'content_filter' }))
    return Buffer.concat([this.#chunkOfOurs(choices, { verdictan }), doneFrame])
  }
}

export const chatReader = (start: StreamStart): StreamReader => new ChatReader(start)

/** Some providers say of each chunk why it has not finished: for nothing, in words. */
const isFinished = ({ finish_reason: reason }: JsonObject): boolean =>
  typeof reason === 'string' && reason !== '' && reason !== 'null'

const indexOf = ({ index }: JsonObject, position: number): number =>
  typeof index === 'number' && Number.isSafeInteger(index) ? index : position

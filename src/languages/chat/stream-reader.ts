/**
 * Follows a stream of chat completion chunks. A channel is one field of one choice, `0/content`; it ends with the
 * choice's `finish_reason`, or with the stream. Unknown fields are channels too.
 *
 * A name is a text as well. It ends when the arguments of its call begin (they may be empty: a call may have none,
 * and nothing else shows it before the choice ends), or with the choice. Providers send a name whole, once or with
 * every delta of its call, and clients join the pieces, or take the first or the last. So a piece that equals the
 * name so far is taken as a repetition and its member is left out, and every client gets the name once. A name in
 * equal pieces (`da`, `da`) therefore leaves as one of them, `da`; no known provider cuts a name like that. A name
 * that continues after its end is a contradiction.
 */
import { envelope, waitingWords } from '../../failure.ts'
import type { SseFrame } from '../../lib/http/sse.ts'
import type { FrameFacts, FrameText, SseFrameText, StreamReader, StreamStart, Usage } from '../dialect.ts'
import { done, doneFrame, isDone } from '../reading/frames/done-marker.ts'
import { FrameTemplateCache } from '../reading/frames/frame-template-cache.ts'
import { parseFrame } from '../reading/frames/non-finite.ts'
import { OpenChannels } from '../reading/frames/open-channels.ts'
import { endingFrame, frameBytes, OpenFrame } from '../reading/frames/open-frame.ts'
import { isForeign, Unforeseen, unknownFrameFacts } from '../reading/frames/unknown-frames.ts'
import { errorCode, isGiven, isObject, type JsonObject, objectsOf, textOf } from '../reading/json-value.ts'
import { plainId, startedAt } from '../reading/request-fields.ts'
import { holdsNoText } from '../reading/texts/text-members.ts'
import { objectWith } from '../reading/texts/text-paths.ts'
import { type FoundText, textLength, textsIn } from '../reading/texts/texts.ts'
import { choiceHolders, generatedLength, readUsage } from './answer.ts'
import { begins, channelOf, namesOf, type Speaker } from './channels.ts'
import { bringsAnswer, elementsOf, indexOf, isFinished, isUnforeseen, isUsageAlone, saidAlone } from './chunk.ts'
import { type Detail, ReasoningDetails, type Signed, withoutBroken } from './reasoning-details.ts'
import { type Call, ChatCalls } from './tool-calls.ts'

const lastFrame = new TextEncoder().encode(doneFrame)

/** The choices are read one by one. */
const readApart: ReadonlySet<string> = new Set(['choices'])
const deltaOnly: ReadonlySet<string> = new Set(['delta'])

/** The prefix of places for texts that are in a choice beside its delta; no member's name has this form. */
const beside = '~choice/'

interface Channel extends Speaker {
  /** The text's place in the delta, in the call, or in the detail. */
  place: string
  ended: boolean
  /** The name so far; empty for other texts. */
  name: string
}

class ChatReader implements StreamReader {
  readonly #start: StreamStart
  /** Channels by choice, by call, by detail, and names by the call they belong to. */
  readonly #channels = new OpenChannels<Channel, number | Call | Detail | string>()
  /** Whether each known choice has finished. */
  readonly #choices = new Map<number, boolean>()
  readonly #calls = new Map<number, ChatCalls>()
  readonly #details = new Map<number, ReasoningDetails>()
  #usage: Usage | null = null
  /** The last followed frame, parsed: `open` can only be called for this one. */
  #chunk: JsonObject | null = null
  readonly #alike = new FrameTemplateCache(() => new ChatReader(this.#start))
  readonly #unforeseen = new Unforeseen()
  /** The members that the provider's chunks give for the whole answer. */
  #head: JsonObject | null = null

  constructor(start: StreamStart) {
    this.#start = start
  }

  frame(frame: SseFrameText): FrameFacts {
    const text = this.#alike.follow(frame)
    return text === null ? this.#read(frame) : this.#alikeFacts(textLength(text))
  }

  repeat(bytes: Uint8Array): FrameFacts | null {
    const length = this.#alike.lengthIn(bytes)
    return length === null ? null : this.#alikeFacts(length)
  }

  #alikeFacts(length: number): FrameFacts {
    return { terminal: false, textLength: length, usage: this.#usage, error: null, ours: false }
  }

  #read(frame: SseFrameText): FrameFacts {
    const { event, data } = frame
    const isEnd = isDone(data)
    const chunk = isEnd ? null : parseFrame(data)
    this.#chunk = chunk
    if (chunk === null) return { ...unknownFrameFacts(isEnd ? '' : data, this.#usage), terminal: isEnd }
    if (isGiven(chunk.error)) {
      return { terminal: true, textLength: 0, usage: this.#usage, error: errorCode(chunk.error), ours: false }
    }
    const foreign = isForeign('chat', textOf(chunk.type) ?? event ?? '', chunk) && { foreign: true }
    if (isUnforeseen(chunk)) return { ...unknownFrameFacts(chunk, this.#noted(chunk)), ...foreign }
    // A first chunk may hold only a filter's result for the prompt, and no id of its own.
    if (this.#head === null && textOf(chunk.id)) this.#head = chunk
    for (const [position, choice] of objectsOf(chunk.choices).entries()) {
      const index = indexOf(choice, position)
      const finished = isFinished(choice) || (this.#choices.get(index) === true && !bringsAnswer(choice))
      this.#choices.set(index, finished)
    }
    const said = saidAlone(chunk)
    const length = generatedLength(chunk.choices, 'delta')
    if (said !== null && !foreign && length === textLength(said.text)) this.#alike.learn(frame, said.member, said.text)
    return {
      terminal: false,
      textLength: length,
      usage: this.#noted(chunk),
      error: null,
      ours: this.#start.usageAdded && isUsageAlone(chunk),
      ...foreign,
    }
  }

  #noted({ usage, service_tier: tier }: JsonObject): Usage | null {
    this.#usage = readUsage(usage, tier) ?? this.#usage
    return this.#usage
  }

  open(frame: SseFrame): FrameText | null {
    const { data } = frame
    if (data === null) return null
    if (data === done) return endingFrame(frame, this.#end(null))
    if (isDone(data)) return this.#unforeseen.openPlain(frame, data, this.#end(null))
    const known = this.#alike.open(frame)
    if (known !== null) return known
    const chunk = this.#alike.isAlike ? parseFrame(data) : this.#chunk
    if (chunk === null) return this.#unforeseen.openPlain(frame, data)
    const signed: Signed[] = []
    const opened = new OpenFrame(frame, chunk, () => withoutBroken(signed))
    this.#openChunk(opened, chunk, signed)
    if (signed.length === 0) this.#alike.learnOpening(opened)
    return opened
  }

  #openChunk(opened: OpenFrame, chunk: JsonObject, signed: Signed[]): void {
    const choices = objectsOf(chunk.choices)
    for (const [position, choice] of choices.entries()) this.#openChoice(opened, choice, position, signed)
    // A choice that is not an object has no place where its text could be read.
    if (Array.isArray(chunk.choices) && choices.length < chunk.choices.length) opened.contradicts = true
    if (isUnforeseen(chunk)) this.#unforeseen.open(opened, chunk, '')
    else for (const found of textsIn(chunk, { except: readApart })) opened.add(found, found.place, true)
    if (isGiven(chunk.error)) opened.ends.push(...this.#end(null))
  }

  #openChoice(opened: OpenFrame, choice: JsonObject, position: number, signed: Signed[]): void {
    const index = indexOf(choice, position)
    const { delta } = choice
    if (choiceHolders(choice, 'delta').some(holdsNoText)) opened.contradicts = true
    if (isObject(delta)) this.#openDelta(opened, delta, index, signed)
    for (const found of textsIn(choice, isObject(delta) ? { except: deltaOnly } : {})) {
      const channel = `${index}/${beside}${found.place}`
      // Legacy completions have their text here, and some providers repeat the delta's text here.
      const continued = found.place === 'text'
      if (continued)
        this.#goOn(channel, { choice: index, call: null }, { place: beside + found.place, kind: found.kind })
      opened.add(found, channel, !continued)
    }
    if (isFinished(choice)) opened.ends.push(...this.#end(index))
  }

  #openDelta(opened: OpenFrame, delta: JsonObject, choice: number, signed: Signed[]): void {
    const inCalls = elementsOf(delta.tool_calls)
    const details = elementsOf(delta.reasoning_details)
    const apart = [...(inCalls.length > 0 ? ['tool_calls'] : []), ...(details.length > 0 ? ['reasoning_details'] : [])]
    const except = apart.length > 0 ? new Set(apart) : nothing
    this.#openTexts(opened, textsIn(delta, { joinParts: true, except }), { choice, call: null })
    for (const [position, piece] of details.entries()) this.#openDetail(opened, piece, choice, position, signed)
    for (const [position, element] of inCalls.entries()) this.#openCall(opened, element, choice, position)
  }

  #openDetail(opened: OpenFrame, piece: JsonObject, choice: number, position: number, signed: Signed[]): void {
    const details = this.#details.get(choice) ?? new ReasoningDetails()
    this.#details.set(choice, details)
    const { detail, ends } = details.take(piece, position)
    this.#openTexts(opened, textsIn(piece, { joinParts: true, kind: 'reasoning' }), { choice, call: null, detail })
    if (!ends) return
    signed.push({ detail, piece })
    opened.ends.push(...this.#channels.end([detail]))
  }

  #openCall(opened: OpenFrame, element: JsonObject, choice: number, position: number): void {
    const calls = this.#calls.get(choice) ?? new ChatCalls()
    this.#calls.set(choice, calls)
    const { call, before, contradicts } = calls.take(element, position)
    if (contradicts) opened.contradicts = true
    if (before !== null) opened.ends.push(...this.#channels.end([before]))
    const found = textsIn(element, { joinParts: true })
    this.#openTexts(opened, found, { choice, call })
    for (const { kind, text } of found) if (kind !== 'name') call.end = text.trimEnd().at(-1) ?? call.end
  }

  #openTexts(opened: OpenFrame, texts: readonly FoundText[], speaker: Speaker): void {
    for (const found of texts) {
      const channel = channelOf(speaker, found.place)
      const onPass = speaker.detail?.came(found)
      if (found.text === '' || found.alone || speaker.detail?.alone) opened.add(found, channel, true, onPass)
      else if (found.kind === 'name') this.#openName(opened, found, this.#learn(channel, speaker, found))
      else {
        this.#goOn(channel, speaker, found)
        opened.add(found, channel, false, onPass)
      }
    }
    const named = texts.filter(begins).map(({ place }) => namesOf(speaker, place))
    if (named.length > 0) opened.ends.push(...this.#channels.end(named))
  }

  #openName(opened: OpenFrame, found: FoundText, channel: Channel): void {
    if (channel.name === found.text) {
      found.put('')
      opened.changed()
    } else if (channel.ended) {
      opened.contradicts = true
      opened.add(found, channelOf(channel, channel.place), true)
    } else {
      channel.name += found.text
      opened.add(found, channelOf(channel, channel.place), false)
    }
  }

  #learn(name: string, speaker: Speaker, { place, kind }: Pick<FoundText, 'place' | 'kind'>): Channel {
    const known = this.#channels.get(name)
    if (known !== undefined) return known
    const { choice, call, detail } = speaker
    const learned: Channel = { ...speaker, place, ended: false, name: '' }
    const part = call ?? detail ?? null
    const ofPart = part === null ? [choice] : [choice, part]
    this.#channels.add(name, learned, kind === 'name' ? [...ofPart, namesOf(speaker, place)] : ofPart)
    return learned
  }

  /** Text that continues has not ended, whatever the provider said before. */
  #goOn(name: string, speaker: Speaker, found: Pick<FoundText, 'place' | 'kind'>): void {
    if (this.#learn(name, speaker, found).ended) this.#channels.reopen(name)
  }

  /** Ends the channels of one choice, or all channels; returns those that were open. */
  #end(choice: number | null): string[] {
    return choice === null ? this.#channels.endAll() : this.#channels.end([choice])
  }

  delta(channel: string, text: string): Uint8Array {
    const unforeseen = this.#unforeseen.delta(channel, text)
    if (unforeseen !== null) return unforeseen
    const known = this.#channels.get(channel)
    if (known === undefined) throw new RangeError('No frame has shown this channel')
    if (known.place.startsWith(beside)) {
      const said = objectWith(known.place.slice(beside.length), text)
      return this.#chunkOfOurs([{ index: known.choice, ...said, delta: {}, finish_reason: null }])
    }
    const place = known.call === null ? known.place : `${known.call.place}/${known.place}`
    const said = objectWith(place, text)
    known.detail?.passed(place, text)
    const delta = known.detail === undefined ? said : { reasoning_details: [{ ...known.detail.labels(), ...said }] }
    return this.#chunkOfOurs([{ index: known.choice, delta, finish_reason: null }])
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

  #openChoices = (): number[] => [...this.#choices].flatMap(([index, finished]) => (finished ? [] : [index]))

  /** Some providers leave `[DONE]` out. */
  isWhole = (choices: number): boolean => this.#choices.size >= Math.max(choices, 1) && this.#openChoices().length === 0

  errorFrames: StreamReader['errorFrames'] = (failure, requestId) =>
    Buffer.concat([frameBytes(envelope(failure, requestId)), lastFrame])

  endFrames = (): Uint8Array => lastFrame

  escalationFrames: StreamReader['escalationFrames'] = (verdictan, begun) => {
    const open = begun ? this.#openChoices() : []
    const waiting = open.length > 0 ? open : [0]
    const textOnly = this.#start.textOnly === true
    const words = waitingWords(verdictan)
    const said = textOnly ? { content: words } : { refusal: words }
    const delta = begun ? said : { role: 'assistant', content: null, ...said }
    const finish_reason = textOnly ? 'stop' : 'content_filter'
    const choices = waiting.map((index) => ({ index, delta, logprobs: null, finish_reason }))
    return Buffer.concat([this.#chunkOfOurs(choices, { verdictan }), lastFrame])
  }
}

export const chatReader = (start: StreamStart): StreamReader => new ChatReader(start)

const nothing: ReadonlySet<string> = new Set()

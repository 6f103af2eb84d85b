/**
 * Follows a stream of response events. A channel is one part of one output item, `2/0/output_text`: output index, part,
 * and the stem of the events that bring it (`response.output_text.delta`, `.done`). The same text comes again whole with
 * the part, the item and the response; those are pieces of the same channel that stand for themselves.
 *
 * Events are numbered. Where a frame of ours is put in, the numbers of all that follow are moved on. The realtime
 * language has the same events with other ends (`EventForm`, realtime/events.ts).
 */
import { envelope, type Failure, type Verdictan } from '../../failure.ts'
import type { SseFrame } from '../../lib/http/sse.ts'
import type { FrameFacts, FrameText, SseFrameText, StreamReader, StreamStart, Usage } from '../dialect.ts'
import { parseFrame } from '../reading/frames/non-finite.ts'
import { OpenChannels } from '../reading/frames/open-channels.ts'
import { frameBytes, kindOfStem, OpenFrame } from '../reading/frames/open-frame.ts'
import { isForeign, isTwofold, Unforeseen, unknownFrameFacts } from '../reading/frames/unknown-frames.ts'
import { errorCode, isGiven, isObject, type JsonObject, objectsOf, textOf } from '../reading/json-value.ts'
import { holdsNoText } from '../reading/texts/text-members.ts'
import { objectWith, stepOfName } from '../reading/texts/text-paths.ts'
import { asKind, textsIn } from '../reading/texts/texts.ts'
import { ownResponse, readUsage, waiting, waitingItemEvents } from './answer.ts'
import { echoedTexts, eventHolders, itemTexts, partOf, readApart } from './texts.ts'

/** What the languages of such events do differently. */
export interface EventForm {
  readonly terminal: ReadonlySet<string>
  /** Events with one item of the conversation, whole. */
  readonly isItemEvent: (type: string) => boolean
  /** The provider's error in an event; null if it is none. */
  errorOf(type: string, event: JsonObject): string | null
  /** Tokens of the sound in an event; absent if the language does not stream sound. */
  soundTokens?(type: string, event: JsonObject, response: JsonObject | null): number
  /** Members that each event needs: its number, or an id. */
  head(number: number): JsonObject
  /** The events that end a stream which fails. `response`: as the provider's first event stated it. */
  errorEvents(failure: Failure, requestId: string, response: JsonObject | null): readonly JsonObject[]
  /** The events that end a response which waits for a person. */
  waitingEvents(waiting: WaitingResponse): readonly JsonObject[]
}

interface WaitingResponse {
  readonly response: JsonObject
  readonly verdictan: Verdictan
  readonly exchangeId: string
  /** The client shows a person the text of finished answers only. */
  readonly textOnly: boolean
  /** The client has seen the response begin, and perhaps items of it. */
  readonly begun: boolean
}

const responseEvents: EventForm = {
  terminal: new Set(['response.completed', 'response.incomplete', 'response.failed']),
  isItemEvent: () => false,
  errorOf(type, event) {
    if (type === 'response.failed') return errorCode(isObject(event.response) ? event.response.error : null)
    if (type !== 'error' && !isObject(event.error)) return null
    const flat = textOf(event.code)
    return isObject(event.error) ? errorCode(event.error) : (flat ?? 'unknown')
  },
  head: (number) => ({ sequence_number: number }),
  errorEvents(failure, requestId) {
    const { error, ...rest } = envelope(failure, requestId)
    const { message, param, code } = error
    // Flat for those that yield it as an event, nested for those that throw what is in `error`.
    return [{ type: 'error', code, message, param, error, ...rest }]
  },
  waitingEvents({ response, verdictan, exchangeId, textOnly, begun }) {
    // Which items of an open response the client knows is not certain: one more could take the place of another.
    const items = begun ? [] : waitingItemEvents(verdictan, exchangeId)
    const inText = textOnly && !begun
    const ended = { ...response, ...waiting(verdictan, exchangeId, inText), ...(begun && { output: [] }) }
    return [...items, { type: inText ? 'response.completed' : 'response.incomplete', response: ended, verdictan }]
  },
}

/** Events whose delta is encoded sound. */
const soundStems = new Set(['audio', 'output_audio'])

interface Channel {
  /** The events' other members: item and part. */
  address: JsonObject
  stem: string
  /** Where the text stands in the delta; null where it is the delta. */
  place: string | null
  ended: boolean
}

class ResponsesReader implements StreamReader {
  readonly #start: StreamStart
  readonly #form: EventForm
  /** By item, and by part of one. */
  readonly #channels = new OpenChannels<Channel, string>()
  #usage: Usage | null = null
  #event: JsonObject | null = null
  #type = ''
  /** The response as the provider's first event told it. */
  #response: JsonObject | null = null
  readonly #unforeseen = new Unforeseen()
  #lastNumber = -1
  /** Frames of ours among the provider's. */
  #inserted = 0

  constructor(start: StreamStart, form: EventForm) {
    this.#start = start
    this.#form = form
  }

  frame({ event: name, data }: SseFrameText): FrameFacts {
    const event = parseFrame(data)
    this.#event = event
    const facts: FrameFacts = { terminal: false, textLength: 0, usage: this.#usage, error: null, ours: false }
    if (event === null) return { ...facts, ...unknownFrameFacts(data, this.#usage) }
    this.#type = textOf(event.type) ?? name ?? ''
    if (isForeign('responses', this.#type, event)) facts.foreign = true
    if (this.#isUnforeseen(event)) return { ...facts, ...unknownFrameFacts(event, this.#usage) }
    if (typeof event.sequence_number === 'number') this.#lastNumber = event.sequence_number
    if (isObject(event.response)) {
      this.#response ??= event.response
      this.#usage = readUsage(event.response) ?? this.#usage
      facts.usage = this.#usage
    }
    if (this.#type.endsWith('.delta') && !soundStems.has(stemOf(this.#type))) {
      facts.textLength = textOf(event.delta)?.length ?? 0
    }
    const soundTokens = this.#form.soundTokens?.(this.#type, event, this.#response) ?? 0
    if (soundTokens > 0) facts.soundTokens = soundTokens
    facts.terminal = this.#form.terminal.has(this.#type)
    facts.error = this.#form.errorOf(this.#type, event)
    return facts
  }

  /** No event that the language has, and no error: what it may be nobody knows. */
  #isUnforeseen(event: JsonObject): boolean {
    const type = this.#type
    if (type === 'error' || isObject(event.error) || this.#form.isItemEvent(type)) return false
    return !type.startsWith('response.') || !knownEnds.has(type.slice(type.lastIndexOf('.') + 1))
  }

  open(frame: SseFrame): FrameText | null {
    const { data } = frame
    if (data === null) return null
    const event = this.#event
    if (event === null) return this.#unforeseen.openPlain(frame, data)
    const opened = new OpenFrame(frame, event, () => this.#renumber(event))
    const stem = stemOf(this.#type)
    if (this.#isUnforeseen(event)) this.#unforeseen.open(opened, event, this.#type)
    // First what clients join by the event's name, whatever else stands beside it.
    else if (this.#type.endsWith('.delta') && !soundStems.has(stem)) this.#openDelta(opened, event, stem)
    else if (isObject(event.response)) this.#openResponse(opened, event, event.response)
    else if (isObject(event.item)) this.#openItem(opened, event, event.item)
    else if (isObject(event.part)) this.#openPart(opened, event, event.part, stem)
    else this.#openOther(opened, event, stem)
    if (this.#form.errorOf(this.#type, event) !== null) opened.ends.push(...this.#channels.endAll())
    if (isTwofold(frame.event, event)) opened.contradicts = true
    // What has no such name has no text of the language's, and an error its own code.
    const isOwn = this.#type.startsWith('response.')
    if (isOwn && eventHolders(event, !soundStems.has(stem)).some(holdsNoText)) opened.contradicts = true
    return opened
  }

  #openDelta(opened: OpenFrame, event: JsonObject, stem: string): void {
    const kind = kindOfStem(stem)
    const inObject = isObject(event.delta) ? textsIn(event.delta, { kind }) : []
    const direct = textsIn(event, isObject(event.delta) ? { kind, except: deltaOnly } : { kind })
    for (const found of direct) {
      const isDelta = found.place === 'delta'
      const channel = isDelta ? channelOf(event, stem) : `${channelOf(event, stem)}/${found.place}`
      if (isDelta) this.#learn(channel, event, stem, null)
      opened.add(isDelta ? asKind(found, kind) : found, channel, !isDelta)
    }
    for (const found of inObject) {
      const channel = `${channelOf(event, stem)}/${found.place}`
      if (!found.alone) this.#learn(channel, event, stem, found.place)
      opened.add(found, channel, found.alone)
    }
  }

  /** A text that is done, whole (`response.output_text.done`), and whatever else an event may say. */
  #openOther(opened: OpenFrame, event: JsonObject, stem: string): void {
    const channel = channelOf(event, stem)
    const kind = kindOfStem(stem)
    for (const found of textsIn(event, soundStems.has(stem) ? { kind, except: deltaOnly } : { kind })) {
      const isText = wholeTexts.has(found.place)
      opened.add(found, isText ? channel : `${channel}/${found.place}`, true)
    }
    // The end of the sound is not that of its transcript, whose name begins alike.
    if (this.#type.endsWith('.done') && !soundStems.has(stem)) opened.ends.push(...this.#endPart(event, channel))
  }

  #openPart(opened: OpenFrame, event: JsonObject, part: JsonObject, stem: string): void {
    const isDone = this.#type.endsWith('.done')
    addAround(opened, event, new Set(['part']))
    const partStem = stem.startsWith('reasoning_summary') ? 'reasoning_summary_text' : stemOfPart(part)
    const channel = channelOf(event, partStem)
    for (const found of textsIn(part, { kind: kindOfStem(partStem) })) {
      const isText = streamedTexts.has(found.place)
      if (isText && !isDone) this.#learn(channel, event, partStem, null)
      opened.add(found, isText ? channel : `${channel}/${found.place}`, isDone || !isText)
    }
    if (isDone) opened.ends.push(...this.#endPart(event, channel))
  }

  #openItem(opened: OpenFrame, event: JsonObject, item: JsonObject): void {
    const isDone = this.#type.endsWith('.done')
    // Clients act on a call when it is whole.
    if (isDone) opened.actsAtOnce = true
    addAround(opened, event, new Set(['item']))
    const isWhole = this.#form.isItemEvent(this.#type)
    this.#addItem(opened, item, numberOf(event.output_index), isDone || isWhole)
    if (isDone && !isWhole) opened.ends.push(...this.#channels.end([itemOf(event)]))
  }

  #openResponse(opened: OpenFrame, event: JsonObject, response: JsonObject): void {
    addAround(opened, event, new Set(['response']))
    addAround(opened, response, readApart)
    for (const found of echoedTexts(response, this.#start.asked)) opened.add(found, `event/${found.place}`, true)
    const items = objectsOf(response.output)
    for (const [index, item] of items.entries()) this.#addItem(opened, item, index, true)
    if (isGiven(response.output) && !isListOf(response.output, items)) opened.contradicts = true
    if (this.#form.terminal.has(this.#type)) opened.ends.push(...this.#channels.endAll())
  }

  /** The texts of an item, which are whole unless deltas still follow. */
  #addItem(opened: OpenFrame, item: JsonObject, outputIndex: number, isWhole: boolean): void {
    for (const found of itemTexts(item)) {
      const part = partOf(item, found.place)
      const address = { ...part?.part, output_index: outputIndex, ...(isGiven(item.id) && { item_id: item.id }) }
      const channel = part === null ? `${outputIndex}//item/${found.place}` : channelOf(address, part.stem)
      if (part !== null && !isWhole && found.text !== '') this.#learn(channel, address, part.stem, null)
      opened.add(found, channel, isWhole || part === null)
    }
  }

  #learn(channel: string, event: JsonObject, stem: string, place: string | null): void {
    if (this.#channels.get(channel) !== undefined) return
    const address: JsonObject = {}
    for (const name of addressMembers) if (event[name] !== undefined) address[name] = event[name]
    this.#channels.add(channel, { address, stem, place, ended: false }, [itemOf(event), partOfItem(event)])
  }

  /** Ends what `event` says is done: the channel, and those whose names begin with its name. */
  #endPart(event: JsonObject, channel: string): string[] {
    return this.#channels.end([partOfItem(event)], (name) => name.startsWith(channel))
  }

  /** Moves an event's number on by the frames that were put in before it. */
  #renumber(event: JsonObject): boolean {
    if (this.#inserted === 0 || typeof event.sequence_number !== 'number') return false
    event.sequence_number += this.#inserted
    return true
  }

  delta(channel: string, text: string): Uint8Array {
    const unforeseen = this.#unforeseen.delta(channel, text)
    if (unforeseen !== null) return unforeseen
    const known = this.#channels.get(channel)
    if (known === undefined) throw new RangeError('No frame has shown this channel')
    // It stands before the frame that was last opened, and takes its number.
    const number = Math.max(0, this.#lastNumber + this.#inserted)
    this.#inserted++
    const type = `response.${known.stem}.delta`
    const delta = known.place === null ? text : objectWith(known.place, text)
    return frameBytes({ type, ...this.#form.head(number), ...known.address, delta }, type)
  }

  errorFrames: StreamReader['errorFrames'] = (failure, requestId) =>
    this.#framesOf(this.#form.errorEvents(failure, requestId, this.#response), this.#next())

  endFrames = (): Uint8Array => new Uint8Array(0)

  escalationFrames: StreamReader['escalationFrames'] = (verdictan, begun) => {
    const { model, exchangeId, textOnly = false } = this.#start
    const opened = begun ? this.#response : null
    const response = opened ?? ownResponse(model, exchangeId)
    const waiting = { response, verdictan, exchangeId, textOnly, begun: opened !== null }
    const events = this.#form.waitingEvents(waiting)
    if (opened !== null) return this.#framesOf(events, this.#next())
    return this.#framesOf([{ type: 'response.created', response }, ...events], 0)
  }

  /** Events of ours with the members that each needs, numbered from `first`. */
  #framesOf(events: readonly JsonObject[], first: number): Uint8Array {
    const frames = events.map(({ type, ...members }, index) =>
      frameBytes({ type, ...this.#form.head(first + index), ...members }, String(type)),
    )
    return Buffer.concat(frames)
  }

  #next(): number {
    return this.#lastNumber + this.#inserted + 1
  }
}

export const responsesReader = (start: StreamStart, form: EventForm = responseEvents): StreamReader =>
  new ResponsesReader(start, form)

/** How the names of events end that the language has; others may go on from one to the next. */
const knownEnds = new Set([
  ...['delta', 'done', 'added', 'created', 'queued', 'in_progress', 'completed', 'incomplete', 'failed', 'cancelled'],
  ...['searching', 'interpreting', 'generating', 'partial_image'],
])

/** Whether a response's output is its items; what else it may be has no place where its text could be read. */
const isListOf = (output: unknown, items: readonly JsonObject[]): boolean =>
  Array.isArray(output) && output.length === items.length

/** A delta that is read apart, or is no text. */
const deltaOnly: ReadonlySet<string> = new Set(['delta'])

/** Texts that stand beside the ones that are streamed, whole. */
function addAround(opened: OpenFrame, holder: JsonObject, except: ReadonlySet<string>): void {
  for (const found of textsIn(holder, { except })) opened.add(found, `event/${found.place}`, true)
}

const addressMembers = ['item_id', 'output_index', 'content_index', 'summary_index'] as const
/** Members that hold the whole text of a channel when it is done. */
const wholeTexts = new Set(['text', 'refusal', 'arguments', 'input', 'code', 'transcript'])

/** Members of a part that its deltas bring. */
const streamedTexts: ReadonlySet<string> = new Set(['text', 'refusal', 'transcript'])

/** The stem of the events that bring a part's text. */
function stemOfPart({ type }: JsonObject): string {
  if (type === 'audio' || type === 'output_audio') return 'output_audio_transcript'
  return type === 'text' ? 'output_text' : (textOf(type) ?? 'output_text')
}

/** `output_text` of `response.output_text.delta`. */
const stemOf = (type: string): string => type.replace(/^response\./, '').replace(/\.[a-z_]+$/, '')

const numberOf = (value: unknown): number => (typeof value === 'number' ? value : 0)

const itemOf = ({ output_index: output }: JsonObject): string => `${numberOf(output)}/`

const partOfItem = (event: JsonObject): string =>
  `${itemOf(event)}${textOfNumber(event.content_index) || textOfNumber(event.summary_index)}/`

const channelOf = (event: JsonObject, stem: string): string => `${partOfItem(event)}${stepOfName(stem)}`

const textOfNumber = (value: unknown): string => (typeof value === 'number' ? String(value) : '')

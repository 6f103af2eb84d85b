/**
 * Follows a stream of message events. A channel is one field of one content block, `1/text`, and ends with
 * `content_block_stop`; a thought ends with its signature, which signs the whole thought.
 */
import { waitingWords } from '../../failure.ts'
import type { SseFrame } from '../../lib/http/sse.ts'
import type { FrameFacts, FrameText, SseFrameText, StreamReader, StreamStart, Usage } from '../dialect.ts'
import { FrameTemplateCache } from '../reading/frames/frame-template-cache.ts'
import { parseFrame } from '../reading/frames/non-finite.ts'
import { OpenChannels } from '../reading/frames/open-channels.ts'
import { frameBytes, OpenFrame } from '../reading/frames/open-frame.ts'
import { isForeign, isTwofold, messageEvents, Unforeseen, unknownFrameFacts } from '../reading/frames/unknown-frames.ts'
import { errorCode, isObject, type JsonObject, objectsOf, parseObject, textOf } from '../reading/json-value.ts'
import { alteredSignature, PassedText } from '../reading/texts/signed-reasoning.ts'
import { holdsNoText } from '../reading/texts/text-members.ts'
import { objectWith } from '../reading/texts/text-paths.ts'
import { type FoundText, textsIn } from '../reading/texts/texts.ts'
import { errorBody, rewrittenError } from './error.ts'
import { blockHolder, blockTexts, deltaLength, ownMessage, readUsage, textAlone, waitingDetails } from './texts.ts'

interface Channel {
  name: string
  block: Block
  /** The delta type, for example `text_delta`, and the place of the text in the delta. */
  deltaType: string
  place: string
  ended: boolean
  passed: PassedText
}

/** A content block. Some providers start a message again with the same numbers: those are other blocks. */
interface Block {
  index: number
  /** The block's part of its channels' names. */
  name: string
  /** The empty input in the call's start event, until deltas bring the real input. */
  emptyInput: FoundText | null
}

/** Blocks begin with an empty text that deltas continue. */
const deltas: Readonly<Record<string, string>> = { text: 'text_delta', thinking: 'thinking_delta' }

class MessagesReader implements StreamReader {
  readonly #start: StreamStart
  readonly #channels = new OpenChannels<Channel, Block>()
  /** The latest block with each index. */
  readonly #blocks = new Map<number, Block>()
  /** The indices of blocks that the message has begun. */
  readonly #ofMessage = new Set<number>()
  readonly #openBlocks = new Set<number>()
  readonly #unforeseen = new Unforeseen()
  #started = 0
  #usage: Usage | null = null
  #event: JsonObject | null = null
  readonly #alike = new FrameTemplateCache(() => new MessagesReader(this.#start))
  #type = ''
  #hasBegun = false

  constructor(start: StreamStart) {
    this.#start = start
  }

  frame(frame: SseFrameText): FrameFacts {
    const text = this.#alike.follow(frame)
    return text === null ? this.#read(frame) : this.#alikeFacts(text.length)
  }

  repeat(bytes: Uint8Array): FrameFacts | null {
    const length = this.#alike.lengthIn(bytes)
    return length === null ? null : this.#alikeFacts(length)
  }

  #alikeFacts(length: number): FrameFacts {
    return { terminal: false, textLength: length, usage: this.#usage, error: null, ours: false }
  }

  #read(frame: SseFrameText): FrameFacts {
    const { event: name, data } = frame
    const event = parseFrame(data)
    this.#event = event
    const facts: FrameFacts = { terminal: false, textLength: 0, usage: this.#usage, error: null, ours: false }
    if (event === null) return { ...facts, ...unknownFrameFacts(data, this.#usage) }
    this.#type = textOf(event.type) ?? name ?? ''
    if (isForeign('messages', this.#type, event)) facts.foreign = true
    if (isUnforeseen(this.#type, event)) return { ...facts, ...unknownFrameFacts(event, this.#usage) }
    if (this.#type === 'message_start' && isObject(event.message)) {
      this.#hasBegun = true
      // Its output count is from the start of the message, before any output, so it does not count as the final usage.
      this.#noteUsage(event.message.usage, false)
    }
    if (this.#type === 'message_delta') this.#noteUsage(event.usage, true)
    if (this.#type === 'content_block_start') this.#openBlocks.add(indexOf(event))
    if (this.#type === 'content_block_stop') this.#openBlocks.delete(indexOf(event))
    if (this.#type === 'content_block_delta' && isObject(event.delta)) facts.textLength = deltaLength(event.delta)
    facts.usage = this.#usage
    if (this.#type === 'error' || isObject(event.error)) {
      facts.error = errorCode(event.error)
      facts.terminal = true
    } else facts.terminal = this.#type === 'message_stop'
    const text = facts.error === null && facts.foreign !== true ? textAlone(this.#type, event) : null
    if (text !== null && text.length === facts.textLength) this.#alike.learn(frame, 'text', text)
    return facts
  }

  /**
   * Each report replaces the counts that it contains; other counts keep their value. A zero input at the start means
   * unknown: a translated stream begins before its provider has reported it.
   */
  #noteUsage(reported: unknown, withOutput: boolean): void {
    const told = readUsage(reported)
    if (told === null) return
    const before = this.#usage
    this.#usage = {
      ...before,
      ...told,
      inputTokens: (withOutput ? told.inputTokens : told.inputTokens || null) ?? before?.inputTokens ?? null,
      outputTokens: (withOutput ? told.outputTokens : null) ?? before?.outputTokens ?? null,
      cachedInputTokens: told.cachedInputTokens ?? before?.cachedInputTokens ?? null,
      cacheWriteTokens: told.cacheWriteTokens ?? before?.cacheWriteTokens ?? null,
      reasoningTokens: told.reasoningTokens ?? before?.reasoningTokens ?? null,
    }
  }

  open(frame: SseFrame): FrameText | null {
    const { data } = frame
    if (data === null) return null
    const known = this.#alike.open(frame)
    if (known !== null) return known
    const event = this.#alike.isAlike ? parseFrame(data) : this.#event
    if (event === null) return this.#unforeseen.openPlain(frame, data)
    const opened = this.#openEvent(frame, event)
    if (isTwofold(frame.event, event)) opened.contradicts = true
    this.#alike.learnOpening(opened)
    return opened
  }

  #openEvent(frame: SseFrame, event: JsonObject): OpenFrame {
    if (this.#type === 'content_block_delta' && isObject(event.delta)) return this.#openDelta(frame, event, event.delta)
    const opened = new OpenFrame(frame, event)
    if (isUnforeseen(this.#type, event)) {
      this.#unforeseen.open(opened, event, this.#type)
      return opened
    }
    if (this.#type === 'message_start' && isObject(event.message)) {
      opened.ends.push(...this.#end(null))
      this.#ofMessage.clear()
      addAround(opened, event, 'message')
      addAround(opened, event.message, 'content')
      for (const [index, block] of objectsOf(event.message.content).entries()) this.#addBlock(opened, block, index)
    } else if (this.#type === 'content_block_start' && isObject(event.content_block)) {
      const before = this.#blocks.get(indexOf(event))
      if (before !== undefined) opened.ends.push(...this.#end(before))
      // Within a message clients append the deltas of both, whatever ended between them.
      if (this.#ofMessage.has(indexOf(event))) opened.contradicts = true
      this.#ofMessage.add(indexOf(event))
      addAround(opened, event, 'content_block')
      this.#addBlock(opened, event.content_block, indexOf(event))
    } else {
      addAround(opened, event)
      if (this.#type === 'content_block_stop') {
        const block = this.#block(indexOf(event))
        addEmptyInput(opened, block)
        opened.ends.push(...this.#end(block))
      }
      if (this.#type === 'message_stop') {
        for (const block of this.#blocks.values()) addEmptyInput(opened, block)
        opened.ends.push(...this.#end(null))
      }
    }
    if (isObject(event.error)) opened.ends.push(...this.#end(null))
    return opened
  }

  #block(index: number): Block {
    return this.#blocks.get(index) ?? this.#begin(index)
  }

  #begin(index: number): Block {
    const name = this.#blocks.has(index) ? `${index}#${this.#started}` : `${index}`
    const block: Block = { index, name, emptyInput: null }
    this.#started++
    this.#blocks.set(index, block)
    return block
  }

  #openDelta(frame: SseFrame, event: JsonObject, delta: JsonObject): OpenFrame {
    const block = this.#block(indexOf(event))
    const type = textOf(delta.type) ?? ''
    const thinking = this.#channels.get(`${block.name}/thinking`)
    const isSignature = type === 'signature_delta'
    const opened = new OpenFrame(frame, event, () => {
      if (!isSignature || thinking === undefined || thinking.passed.isWhole) return false
      // A provider refuses signed thinking if the text does not match its signature.
      delta.signature = alteredSignature(textOf(delta.signature) ?? '')
      return true
    })
    if (holdsNoText(blockHolder(delta))) opened.contradicts = true
    addAround(opened, event, 'delta')
    for (const found of textsIn(delta)) {
      if (found.place === 'partial_json' && found.text !== '') block.emptyInput = null
      const channel = `${block.name}/${found.place}`
      const continued = !found.alone && type !== 'citations_delta'
      if (continued) this.#addPart(opened, found, this.#learn(channel, block, type, found.place))
      else opened.add(found, channel, true)
    }
    if (isSignature) opened.ends.push(...this.#end(block))
    return opened
  }

  /** The texts in a block's start event; results of tools are whole, in one frame. */
  #addBlock(opened: OpenFrame, content: JsonObject, index: number): void {
    if (holdsNoText(blockHolder(content))) opened.contradicts = true
    const block = this.#begin(index)
    const type = textOf(content.type) ?? ''
    for (const found of blockTexts(content)) {
      const deltaType = found.place === type ? deltas[type] : undefined
      const channel = `${block.name}/${found.place}`
      // A client may act on a call that comes with its whole input.
      if (found.kind === 'tool_arguments' && !isEmptyInput(found)) opened.actsAtOnce = true
      if (isEmptyInput(found)) block.emptyInput = found
      else if (deltaType === undefined) opened.add(found, channel, true)
      else if (found.text !== '') this.#addPart(opened, found, this.#learn(channel, block, deltaType, found.place))
    }
  }

  #addPart(opened: OpenFrame, found: FoundText, channel: Channel): void {
    channel.passed.came(found.text)
    opened.add(found, channel.name, false, (text) => channel.passed.passed(text))
  }

  #learn(channel: string, block: Block, deltaType: string, place: string): Channel {
    let known = this.#channels.get(channel)
    if (known === undefined) {
      known = { name: channel, block, deltaType, place, ended: false, passed: new PassedText() }
      this.#channels.add(channel, known, [block])
    }
    return known
  }

  /** Ends the channels of one block, or all channels; returns those that were open. */
  #end(block: Block | null): string[] {
    return block === null ? this.#channels.endAll() : this.#channels.end([block])
  }

  delta(channel: string, text: string): Uint8Array {
    const unforeseen = this.#unforeseen.delta(channel, text)
    if (unforeseen !== null) return unforeseen
    const known = this.#channels.get(channel)
    if (known === undefined) throw new RangeError('No frame has shown this channel')
    known.passed.passed(text)
    const delta = { type: known.deltaType, ...objectWith(known.place, text) }
    return frameBytes({ type: 'content_block_delta', index: known.block.index, delta }, 'content_block_delta')
  }

  /** Clients of this language drop a frame without its event name, and read an error only in its own form. */
  ownError = (frame: SseFrame, requestId: string): SseFrame | null => {
    const said = frame.data === null ? null : parseObject(frame.data)
    if (said === null || !isObject(said.error) || (said.type === 'error' && frame.event === 'error')) return null
    const own = said.type === 'error' ? said : (rewrittenError(500, said, requestId) ?? said)
    return { event: 'error', data: JSON.stringify(own), bytes: frameBytes(own, 'error') }
  }

  errorFrames: StreamReader['errorFrames'] = (failure, requestId) => frameBytes(errorBody(failure, requestId), 'error')

  endFrames = (): Uint8Array => new Uint8Array(0)

  escalationFrames: StreamReader['escalationFrames'] = (verdictan, begun) => {
    const { model, exchangeId } = this.#start
    const isOpen = begun && this.#hasBegun
    const message = ownMessage(model, exchangeId)
    // Which blocks of an open message the client knows is not certain: one more could take the place of another.
    const inText = this.#start.textOnly === true && !isOpen
    const text = waitingWords(verdictan)
    const opening = isOpen
      ? [...this.#openBlocks].map((index) => ({ type: 'content_block_stop', index }))
      : [{ type: 'message_start', message }]
    const block = [
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
      { type: 'content_block_stop', index: 0 },
    ]
    const events = [
      ...opening,
      ...(inText ? block : []),
      {
        type: 'message_delta',
        delta: inText
          ? { stop_reason: 'end_turn', stop_sequence: null }
          : { stop_reason: 'refusal', stop_sequence: null, stop_details: waitingDetails(verdictan) },
        usage: { output_tokens: this.#usage?.outputTokens ?? 0 },
        verdictan,
      },
      { type: 'message_stop' },
    ]
    return Buffer.concat(events.map((event) => frameBytes(event, event.type)))
  }
}

export const messagesReader = (start: StreamStart): StreamReader => new MessagesReader(start)

/** Neither an event of the language nor an error: its meaning is unknown. */
const isUnforeseen = (type: string, { error }: JsonObject): boolean =>
  !(messageEvents.has(type) || type === 'ping' || type === 'error' || isObject(error))

const isEmptyInput = ({ place, kind, text }: FoundText): boolean =>
  place === 'input' && kind === 'tool_arguments' && text === '{}'

/** A call that ends without deltas of its input has the empty input it began with, as in a whole answer. */
function addEmptyInput(opened: OpenFrame, block: Block): void {
  const { emptyInput, name } = block
  block.emptyInput = null
  if (emptyInput !== null) opened.add(emptyInput, `${name}/${emptyInput.place}`, true)
}

/** Whole texts beside the streamed ones. */
function addAround(opened: OpenFrame, holder: JsonObject, ...except: readonly string[]): void {
  for (const found of textsIn(holder, { except: new Set(except) })) opened.add(found, `event/${found.place}`, true)
}

const indexOf = ({ index }: JsonObject): number => (typeof index === 'number' ? index : 0)

/**
 * Follows a stream of responses. A channel is what one candidate says, `0/text`, or thinks, `0/thought`; clients join
 * all its texts, whatever stands between them, so it ends with the candidate, and a thought with its signature, before
 * which all of it must be sent. Everything else is whole in its frame: function calls above all.
 *
 * The language has no end marker. The frame with which the last known candidate finishes ends the stream, and so does
 * one that says that the prompt was blocked.
 */
import type { SseFrame } from '../../lib/http/sse.ts'
import type { FrameFacts, FrameText, SseFrameText, StreamReader, StreamStart, Usage } from '../dialect.ts'
import { parseFrame } from '../reading/frames/non-finite.ts'
import { OpenChannels } from '../reading/frames/open-channels.ts'
import { frameBytes, OpenFrame } from '../reading/frames/open-frame.ts'
import { isForeign, saysOnlyThatItLives, Unforeseen, unknownFrameFacts } from '../reading/frames/unknown-frames.ts'
import { errorCode, isGiven, isObject, type JsonObject, objectsOf, parseObject, textOf } from '../reading/json-value.ts'
import { holdsNoText } from '../reading/texts/text-members.ts'
import { textsIn } from '../reading/texts/texts.ts'
import { readGeminiUsage } from './answers.ts'
import { errorBody, rewrittenError } from './error.ts'
import { ownResponse } from './own-response.ts'
import { generatedLength, partHolder, partsIn, partTexts, waitingCandidate } from './texts.ts'

interface Channel {
  candidate: number
  isThought: boolean
  ended: boolean
}

const contentOnly: ReadonlySet<string> = new Set(['content'])
const partsOnly: ReadonlySet<string> = new Set(['parts'])
const candidatesOnly: ReadonlySet<string> = new Set(['candidates'])

class GeminiReader implements StreamReader {
  readonly #start: StreamStart
  readonly #channels = new OpenChannels<Channel, number>()
  /** Whether each known candidate has finished. */
  readonly #candidates = new Map<number, boolean>()
  readonly #unforeseen = new Unforeseen()
  #usage: Usage | null = null
  #response: JsonObject | null = null
  /** The members that the provider's responses give for the whole answer. */
  #head: JsonObject | null = null

  constructor(start: StreamStart) {
    this.#start = start
  }

  frame({ event, data }: SseFrameText): FrameFacts {
    const response = parseFrame(data)
    this.#response = response
    const facts: FrameFacts = { terminal: false, textLength: 0, usage: this.#usage, error: null, ours: false }
    // No client of the language reads data that is no object, and an array of responses would no longer be JSON.
    if (response === null) return saysOnlyThatItLives(data) ? facts : { ...facts, foreign: true }
    if (isGiven(response.error)) return { ...facts, terminal: true, error: codeOf(response.error) }
    this.#usage = readGeminiUsage(response.usageMetadata) ?? this.#usage
    const foreign = isForeign('gemini', textOf(response.type) ?? event ?? '', response) && { foreign: true }
    if (isUnforeseen(response)) return { ...facts, ...unknownFrameFacts(response, this.#usage), ...foreign }
    this.#head ??= response
    for (const [position, candidate] of objectsOf(response.candidates).entries()) {
      this.#candidates.set(indexOf(candidate, position), isFinished(candidate))
    }
    return {
      ...facts,
      ...foreign,
      terminal: this.#hasEnded() || isBlocked(response),
      textLength: generatedLength(response.candidates),
      usage: this.#usage,
    }
  }

  #hasEnded = (): boolean =>
    this.#candidates.size >= (this.#start.choices ?? 1) && [...this.#candidates.values()].every((finished) => finished)

  open(frame: SseFrame): FrameText | null {
    const { data } = frame
    if (data === null) return null
    const response = this.#response
    if (response === null) return this.#unforeseen.openPlain(frame, data)
    const opened = new OpenFrame(frame, response)
    opened.actsAtOnce = true
    const candidates = objectsOf(response.candidates)
    for (const [position, candidate] of candidates.entries()) this.#openCandidate(opened, candidate, position)
    if (Array.isArray(response.candidates) && candidates.length < response.candidates.length) opened.contradicts = true
    if (isUnforeseen(response)) this.#unforeseen.open(opened, response, '')
    else for (const found of textsIn(response, { except: candidatesOnly })) opened.add(found, found.place, true)
    if (isGiven(response.error) || isBlocked(response)) opened.ends.push(...this.#channels.endAll())
    return opened
  }

  #openCandidate(opened: OpenFrame, candidate: JsonObject, position: number): void {
    const index = indexOf(candidate, position)
    const { content } = candidate
    const parts = partsIn(content)
    for (const part of parts) this.#openPart(opened, part, index)
    if (isObject(content)) {
      const isRead = isObject(content.parts) || parts === content.parts
      // A part that is no object has no place where its text could be read.
      if (Array.isArray(content.parts) && !isRead) opened.contradicts = true
      for (const found of textsIn(content, { except: partsOnly })) opened.add(found, `${index}/~${found.place}`, true)
    }
    for (const found of textsIn(candidate, isObject(content) ? { except: contentOnly } : {})) {
      opened.add(found, `${index}/~${found.place}`, true)
    }
    if (isFinished(candidate)) opened.ends.push(...this.#channels.end([index]))
  }

  #openPart(opened: OpenFrame, part: JsonObject, candidate: number): void {
    // Some clients take any value for a thought that is true in their language.
    if (holdsNoText(partHolder(part)) || (isGiven(part.thought) && typeof part.thought !== 'boolean')) {
      opened.contradicts = true
    }
    const isThought = part.thought === true
    for (const found of partTexts(part)) {
      if (found.place !== 'text') {
        opened.add(found, `${candidate}/~part/${found.place}`, true)
        continue
      }
      const name = `${candidate}/${isThought ? 'thought' : 'text'}`
      const known = this.#channels.get(name)
      if (known === undefined) this.#channels.add(name, { candidate, isThought, ended: false }, [candidate])
      else if (known.ended) this.#channels.reopen(name)
      opened.add(found, name, false)
    }
    if (isThought && isGiven(part.thoughtSignature)) {
      opened.ends.push(...this.#channels.end([candidate], (name) => name === `${candidate}/thought`))
    }
  }

  delta(channel: string, text: string): Uint8Array {
    const unforeseen = this.#unforeseen.delta(channel, text)
    if (unforeseen !== null) return unforeseen
    const known = this.#channels.get(channel)
    if (known === undefined) throw new RangeError('No frame has shown this channel')
    const part = { text, ...(known.isThought && { thought: true }) }
    return this.#responseOfOurs([{ content: { role: 'model', parts: [part] }, index: known.candidate }])
  }

  #responseOfOurs(candidates: readonly JsonObject[], more: JsonObject = {}): Uint8Array {
    const own = ownResponse(this.#start.model, this.#start.exchangeId)
    const { modelVersion = own.modelVersion, responseId = own.responseId } = this.#head ?? {}
    return frameBytes({ candidates, modelVersion, responseId, ...more })
  }

  ownError = (frame: SseFrame): SseFrame | null => {
    const rewritten = frame.data === null ? null : rewrittenError(500, parseObject(frame.data))
    if (rewritten === null) return null
    return { event: null, data: JSON.stringify(rewritten), bytes: frameBytes(rewritten) }
  }

  errorFrames: StreamReader['errorFrames'] = (failure, requestId) => frameBytes(errorBody(failure, requestId))

  endFrames = (): Uint8Array => new Uint8Array(0)

  escalationFrames: StreamReader['escalationFrames'] = (verdictan, begun) => {
    const open = begun ? [...this.#candidates].flatMap(([index, finished]) => (finished ? [] : [index])) : []
    const waiting = open.length > 0 ? open : [0]
    return this.#responseOfOurs(
      waiting.map((index) => waitingCandidate(verdictan, index)),
      { verdictan },
    )
  }
}

export const geminiReader = (start: StreamStart): StreamReader => new GeminiReader(start)

/** Neither a response of the language nor an error: its meaning is unknown. */
const isUnforeseen = ({ candidates, promptFeedback, usageMetadata, error }: JsonObject): boolean =>
  !(isGiven(candidates) || isGiven(promptFeedback) || isGiven(usageMetadata) || isGiven(error))

const isFinished = ({ finishReason }: JsonObject): boolean =>
  textOf(finishReason) !== null && finishReason !== 'FINISH_REASON_UNSPECIFIED'

const isBlocked = ({ promptFeedback: feedback }: JsonObject): boolean =>
  isObject(feedback) && textOf(feedback.blockReason) !== null

const indexOf = ({ index }: JsonObject, position: number): number => (typeof index === 'number' ? index : position)

/** Google's canonical word, in lower case, as events name it. */
const codeOf = (error: unknown): string =>
  (isObject(error) ? textOf(error.status)?.toLowerCase() : undefined) ?? errorCode(error)

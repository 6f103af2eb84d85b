/**
 * A dialect is one wire language that applications speak to the gateway: how to read the few fields the gateway acts
 * on, where its text stands, how to follow an answer as it passes, and how to say an error. Everything else in a body is
 * passed on as bytes. Adding one is a file and a line in `index.ts`.
 */

import type { Failure, Verdictan } from '../failure.ts'
import type { SseFrame } from '../lib/http/sse.ts'
import type { Family } from './families.ts'
import type { RequestEcho } from './reading/texts/request-echo.ts'
import type { TextKind, TextSlot } from './reading/texts/text-slot.ts'

/** The fields of a request that the gateway acts on. */
export interface RequestFacts {
  model: string
  stream: boolean
  /** The input in tokens, estimated from its text, for events of answers that report no usage. */
  inputEstimate: number
  /** The most output tokens that the caller allows for each choice; null where it does not say, or there are none. */
  outputLimit: number | null
  /** How many answers are asked for: `n`. */
  choices: number
  /** The input is more than the body holds (`previous_response_id`, remote files): a model's window bounds it. */
  beyondBody: boolean
  /** The member whose cost has no bound (usage/pricing/README.md); null where there is none. */
  unbounded: string | null
  /**
   * The most uses of tools that the provider runs and charges for itself, where they have a maximum; each may take the
   * model's window once more. Absent where there are none.
   */
  toolUses?: number
  /** The service tier that is asked for, in the provider's word, and the member that names it; absent where none does. */
  serviceTier?: { readonly name: string; readonly param: string }
  /** `session_id` of the body; null where the family has none or it was left out. */
  sessionId: string | null
}

/**
 * Token counts as the provider reported them; null where it did not, or has not yet. Input includes what was read from
 * a cache and written to one.
 */
export interface Usage {
  inputTokens: number | null
  outputTokens: number | null
  cachedInputTokens: number | null
  cacheWriteTokens: number | null
  reasoningTokens: number | null
  /** Those of the cache writes that are kept for an hour, where the provider tells them apart. */
  cacheWriteHourTokens?: number | null
  /** Audio among the input and the output, where the provider tells it apart. */
  audioInputTokens?: number | null
  audioOutputTokens?: number | null
  /** Audio that was listened to, where it is billed by time. */
  audioSeconds?: number | null
  /** Uses of tools that the provider ran and bills by the use. */
  toolUses?: number | null
  /** The service tier that the answer was made in, where the provider names it. */
  serviceTier?: string
}

/** What one SSE frame means to the gateway. */
export interface FrameFacts {
  /** The frame ends the answer: it waits for the outcome to be recorded (fleet/outbox/README.md rule 4). */
  terminal: boolean
  /** Characters of generated text in it, for estimates. */
  textLength: number
  /** The last cumulative figure of the stream so far. */
  usage: Usage | null
  /**
   * The frame is the provider's own error; its code for the event. Where it is not terminal too, the provider's own end
   * may follow (`response.failed`).
   */
  error: string | null
  /** The frame is there only because the gateway asked for usage: the caller must not see it. */
  ours: boolean
  /** Another language than the stream's own says this: the answer is none (`languages/reading/frames/unknown-frames.ts`). */
  foreign?: boolean
}

/**
 * A piece of generated text in a frame. Pieces of one channel, joined in order, are one text. A name in pieces is taken
 * whole by clients: nothing of it may leave before its channel has ended.
 */
export interface StreamPiece {
  /** One choice and field: `0/content`, `0/tool_calls/1/function/arguments`. */
  readonly channel: string
  readonly kind: TextKind
  readonly text: string
  /**
   * A text that stands on its own: the channel's whole text once more (`response.output_text.done`), or a string that is
   * never continued (a citation). It is inspected by itself, and neither follows nor precedes other pieces.
   */
  readonly whole: boolean
  /**
   * The whole of a frame's data, which is no JSON, and the only piece of its frame: text, or a word that keeps the line
   * open. It is not cut.
   */
  readonly raw?: 'text' | 'word'
  /** The event that such data came as: some clients join only what came as one. */
  readonly event?: string
  /** It came in several lines, which some clients join without what stands between them. */
  readonly inLines?: boolean
  replace(text: string): void
}

/**
 * A frame opened for inspection. `bytes` is called once, last: after every `replace`, and after `delta` was asked for
 * what is still held of `ends`, because what it adds stands before this frame and may change its number or signature.
 */
export interface FrameText {
  readonly pieces: readonly StreamPiece[]
  /**
   * Channels that end with this frame. One may have a last piece in the same frame. A terminal frame and a provider's
   * error end every channel that has not ended. Text on a channel that has ended is a provider that breaks its own
   * protocol: it comes as a piece all the same, and must not be taken for the start of another text.
   */
  readonly ends: readonly string[]
  /** It says in two ways what it is, or whose text it brings, so that one client takes it otherwise than another. */
  readonly contradicts?: boolean
  /** The frame's bytes: as they came where nothing changed. Log probabilities are always left out. */
  bytes(): Uint8Array
}

/** What of a frame says what it means. */
export type SseFrameText = Pick<SseFrame, 'event'> & { readonly data: string }

/** Follows one streamed answer, frame by frame. */
export interface StreamReader {
  /** Called for each frame that has data, in order. */
  frame(frame: SseFrameText): FrameFacts
  /**
   * Opens the frame that `frame` was just called with; null where it is passed as it came. Called for every frame of
   * an inspected stream, because channels are learned from it.
   */
  open(frame: SseFrame): FrameText | null
  /** A frame of ours that adds text to a channel that `open` has shown, for text that was held back until it ended. */
  delta(channel: string, text: string): Uint8Array
  /** A provider's error frame as this dialect's clients read one, where it came in another form; null where it is right. */
  ownError?(frame: SseFrame, requestId: string): SseFrame | null
  /**
   * Whether all that answers has come, so that the provider's side may end without the frame that says so: some leave it
   * out, and `endFrames` says it then. `choices`: as many as were asked for. Absent where none does.
   */
  isWhole?(choices: number): boolean
  /** The bytes that end a stream which fails after it began. */
  errorFrames(failure: Failure, requestId: string): Uint8Array
  /** The bytes that end a stream after the provider itself sent an error frame, or no end of its own. */
  endFrames(): Uint8Array
  /**
   * The bytes that say an escalation and end the stream, with the opening events that the dialect's clients need.
   * `begun`: frames with data have been passed on, so that the opening is not said again where the provider sent one.
   */
  escalationFrames(verdictan: Verdictan, begun: boolean): Uint8Array
}

/** What a reader knows of the stream before its first frame. */
export interface StreamStart {
  /** The model's id as the caller used it. */
  model: string
  exchangeId: string
  /** The gateway asked for usage which the caller did not ask for (`stream_options.include_usage`). */
  usageAdded: boolean
  /** The request's texts; absent where nobody inspects the stream. */
  asked?: RequestEcho
}

/** What a whole answer means to the gateway. */
export interface AnswerFacts {
  usage: Usage | null
  /** Characters of generated text in it, for estimates. */
  textLength: number
}

export interface Dialect {
  family: Family
  /** Reads a parsed body. Throws `invalid_parameter` naming the field where the gateway cannot act without it. */
  read(body: Readonly<Record<string, unknown>>): RequestFacts
  /** The texts of a request's parsed body, in order. */
  requestText(body: Record<string, unknown>): readonly TextSlot[]
  /**
   * The member that holds text only in numbers, as tokens of a model's vocabulary, which no policy can read; null where
   * none does. Absent where the family takes none.
   */
  tokenInput?(body: Readonly<Record<string, unknown>>): string | null
  /** Reads a whole JSON answer. `body` is what the provider sent, parsed. */
  readAnswer(body: unknown): AnswerFacts
  /** The texts of a whole JSON answer. `asked`: of the request, where it is known. */
  answerText(body: unknown, asked?: RequestEcho): readonly TextSlot[]
  /** A new reader for one stream. */
  reader(start: StreamStart): StreamReader
  /** The body of an error answer in this language. */
  errorBody(failure: Failure, requestId: string): unknown
  /** The HTTP status of an error answer, where the language says errors in answers that succeed. Absent: the failure's. */
  errorStatus?(failure: Failure): number
  /** A provider's error body (parsed JSON) in this language, where it came in another; null to pass it as it came. */
  providerError(status: number, body: unknown, requestId: string): unknown
  /** The body of an answer that waits for a person's decision; null where the family has none and answers 403. */
  escalation(facts: RequestFacts, verdictan: Verdictan, exchangeId: string): unknown
}

/** About how many tokens a text of this length makes: four characters each, as providers' own advice has it. */
export const estimateTokens = (characters: number): number => Math.ceil(characters / 4)

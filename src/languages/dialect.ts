/**
 * A dialect is one wire language that applications speak to the gateway: how to read the few fields the gateway acts
 * on, where its text is, how to follow an answer as it streams, and how to write an error. Everything else in a body
 * is passed on as bytes. To add one: a file, and a line in `index.ts`.
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
  /** How many of them are sound; absent if none are. */
  soundEstimate?: number
  /**
   * The most output tokens that the caller allows for each choice; null where it sets no limit or the family has none.
   */
  outputLimit: number | null
  /** How many answers the caller asks for: `n`. */
  choices: number
  /**
   * The input is more than the body holds (`previous_response_id`, remote files). The model's context window is then
   * its only bound.
   */
  beyondBody: boolean
  /** Bytes of the input that the model reads more than once, for each further time; absent: none. */
  repeatedBytes?: number
  /** The member whose cost has no bound (usage/pricing/README.md); null if there is none. */
  unbounded: string | null
  /** What has no bound in that member and what to do about it, as a message says it. */
  unboundedWhy?: string
  /**
   * The most uses of the tools that the provider runs and charges for itself. Each use may cost the model's whole
   * context window again. Absent if the tools have no maximum or there are none.
   */
  toolUses?: number
  /**
   * The requested service tier, in the provider's word, and the member that names it. Absent if no member names one.
   */
  serviceTier?: { readonly name: string; readonly param: string }
  /** `session_id` of the body; null if the family has none or the caller left it out. */
  sessionId: string | null
}

/**
 * Token counts as the provider reported them; null if it did not, or not yet. Input includes tokens read from a cache
 * and written to one.
 */
export interface Usage {
  inputTokens: number | null
  outputTokens: number | null
  cachedInputTokens: number | null
  cacheWriteTokens: number | null
  reasoningTokens: number | null
  /** Cache writes that are kept for an hour, if the provider reports them separately. */
  cacheWriteHourTokens?: number | null
  /** Audio tokens of the input and the output, if the provider reports them separately. */
  audioInputTokens?: number | null
  audioOutputTokens?: number | null
  /** How many images the answer has. */
  images?: number | null
  /** Length of the input audio, if it is billed by time. */
  audioSeconds?: number | null
  /** Uses of tools that the provider ran and bills by the use. */
  toolUses?: number | null
  /** The service tier that produced the answer, if the provider names it. */
  serviceTier?: string
}

/** What one SSE frame means to the gateway. */
export interface FrameFacts {
  /** The frame ends the answer. It is held back until the outcome is recorded (fleet/outbox/README.md rule 4). */
  terminal: boolean
  /** Characters of generated text in the frame, for estimates. */
  textLength: number
  /** Tokens of generated sound in the frame, for estimates; absent if there are none. */
  soundTokens?: number
  /** The latest cumulative usage of the stream. */
  usage: Usage | null
  /**
   * Set if the frame is the provider's own error: its code for the event. If the frame is not terminal too, the
   * provider's own end may follow (`response.failed`).
   */
  error: string | null
  /** The frame exists only because the gateway asked for usage: the caller must not see it. */
  ours: boolean
  /**
   * The frame is in another language than the stream, or cannot be read, so there is no valid answer
   * (`languages/reading/frames/unknown-frames.ts`).
   */
  foreign?: boolean
}

/**
 * A piece of generated text in a frame. Pieces of one channel, joined in order, are one text. Clients use a name only
 * when it is complete, so no piece of a name may leave before its channel has ended.
 */
export interface StreamPiece {
  /** One choice and field: `0/content`, `0/tool_calls/1/function/arguments`. */
  readonly channel: string
  readonly kind: TextKind
  readonly text: string
  /**
   * A text of its own: the channel's whole text repeated (`response.output_text.done`), or a string that is never
   * continued (a citation). It is inspected by itself and joined to no other piece.
   */
  readonly whole: boolean
  /**
   * The whole data of a frame that is not JSON, and the only piece of its frame: text, or a keep-alive word. It is not
   * cut.
   */
  readonly raw?: 'text' | 'word'
  /** The name of the event that carried this data: some clients join only pieces of the same event. */
  readonly event?: string
  /** The data came in several lines. Some clients join them without the line break. */
  readonly inLines?: boolean
  replace(text: string): void
}

/**
 * A frame opened for inspection. Call `bytes` once, after every `replace` and after asking `delta` for the text still
 * held back on the channels in `ends`: `delta` adds a frame before this one, which may change this frame's number or
 * signature.
 */
export interface FrameText {
  readonly pieces: readonly StreamPiece[]
  /**
   * Channels that end with this frame. A channel may have its last piece in the same frame. A terminal frame and a
   * provider's error end every channel that is open. A provider that sends text on an ended channel breaks its own
   * protocol: that text still comes as a piece and must not be taken for the start of another text.
   */
  readonly ends: readonly string[]
  /**
   * The frame states its type, or the place of its text, in two ways that disagree, so clients would read it
   * differently.
   */
  readonly contradicts?: boolean
  /**
   * A client acts on the frame as soon as it has it: it holds whole calls, or the end of the answer. If a policy stops
   * the stream in this frame, only its continued texts leave, in frames of `delta`.
   */
  readonly actsAtOnce?: boolean
  /** The frame's bytes, unchanged if no text was replaced. Log probabilities are always removed. */
  bytes(): Uint8Array
}

/** What the frame says about its own meaning. */
export type SseFrameText = Pick<SseFrame, 'event'> & { readonly data: string }

/** Follows one streamed answer, frame by frame. */
export interface StreamReader {
  /** Called for each frame that has data, in order. */
  frame(frame: SseFrameText): FrameFacts
  /**
   * What bytes mean together that are whole frames, if each differs from the frame before in one text only and cannot
   * change what the reader knows; null if they must be read. Only for a stream whose frames are not opened. Absent if
   * the dialect has no such frames.
   */
  repeat?(bytes: Uint8Array): FrameFacts | null
  /**
   * Opens the frame that `frame` was just called with; null if it is passed on unchanged. Called for every frame of
   * an inspected stream, because the reader learns the channels from it.
   */
  open(frame: SseFrame): FrameText | null
  /**
   * Builds a frame that adds text to a channel that `open` has shown, for text that was held back until the channel
   * ended.
   */
  delta(channel: string, text: string): Uint8Array
  /** A provider's error frame in this dialect's form, if it came in another form; null if it needs no change. */
  ownError?(frame: SseFrame, requestId: string): SseFrame | null
  /**
   * Whether every choice has come to its end, so that the provider may close without a final frame: some leave it
   * out, and `endFrames` then writes it. `choices`: how many the caller asked for. Absent if every stream of the
   * dialect needs its final frame.
   */
  isWhole?(choices: number): boolean
  /** The bytes that end a stream which fails after it began. */
  errorFrames(failure: Failure, requestId: string): Uint8Array
  /** The bytes that end a stream after the provider sent an error frame, or sent no end of its own. */
  endFrames(): Uint8Array
  /**
   * The bytes that report an escalation and end the stream, with the opening events that the dialect's clients need.
   * `begun`: frames with data were passed on, so the opening is not repeated if the provider sent one.
   */
  escalationFrames(verdictan: Verdictan, begun: boolean): Uint8Array
}

/** What a reader knows of the stream before its first frame. */
export interface StreamStart {
  /** The model's id as the caller used it. */
  model: string
  exchangeId: string
  /** The gateway asked for usage and the caller did not (`stream_options.include_usage`). */
  usageAdded: boolean
  /** How many answers the caller asks for; absent: one. */
  choices?: number
  /** The request's texts; absent if the stream is not inspected. */
  asked?: RequestEcho
  /** The client shows a person the text of finished answers only: an escalation has that form. */
  textOnly?: boolean
}

/** What a whole answer means to the gateway. */
export interface AnswerFacts {
  usage: Usage | null
  /** Characters of generated text in the answer, for estimates. */
  textLength: number
}

export interface Dialect {
  family: Family
  /**
   * Its requests ask only how many tokens the input has. The answer is `{input_tokens}`; nothing is generated, and
   * nothing is charged or counted against a limit.
   */
  countsTokens?: true
  /**
   * Its requests read or change what a provider has stored. Nothing is generated, and nothing is charged or counted
   * against a limit.
   */
  readsStored?: true
  /** The path after the provider's base, if it is not the family's own. */
  endpoint?: string
  /**
   * The body in the form in which the gateway reads it, for a language whose wire form is another (`request-form.ts` of
   * gemini). `text` is its JSON, `url` the address that it came to. Throws `invalid_parameter`. Absent: the wire form.
   */
  gatewayForm?(text: string, url: string): string
  /** The wire form of such a body, for a provider of the same language. */
  wireForm?(text: string): string
  /** The body of a count of tokens; absent: `{input_tokens}`. */
  countBody?(tokens: number): unknown
  /** Reads a parsed body. Throws `invalid_parameter`, naming the field, for a value that the gateway cannot act on. */
  read(body: Readonly<Record<string, unknown>>): RequestFacts
  /**
   * Gives the provider's own tools a maximum of uses where they have none, by changing the parsed body, and returns the
   * names of the changed members. Only tools that providers charge by the use at a listed price get one. Absent if the
   * language has no such maximum.
   */
  limitTools?(body: Record<string, unknown>, uses: number): readonly string[]
  /** The texts of a request's parsed body, in order. */
  requestText(body: Record<string, unknown>): readonly TextSlot[]
  /**
   * The member that holds text only as token numbers, which no policy can read; null if none does. Absent if the family
   * takes no tokens.
   */
  tokenInput?(body: Readonly<Record<string, unknown>>): string | null
  /** Reads a whole JSON answer. `body` is what the provider sent, parsed. */
  readAnswer(body: unknown): AnswerFacts
  /** The texts of a whole JSON answer. `asked`: the texts of the request, if known. */
  answerText(body: unknown, asked?: RequestEcho): readonly TextSlot[]
  /** A new reader for one stream. */
  reader(start: StreamStart): StreamReader
  /** The body of an error answer in this language. */
  errorBody(failure: Failure, requestId: string): unknown
  /**
   * The HTTP status of an error answer, for languages that report errors in successful answers. Absent: the failure's
   * own status.
   */
  errorStatus?(failure: Failure): number
  /**
   * A provider's error body (parsed JSON) in this language, if it came in another form; null to pass it on unchanged.
   */
  providerError(status: number, body: unknown, requestId: string): unknown
  /**
   * The body of an answer that waits for a person's decision; null if the family has no such body and answers 403.
   * `textOnly` as in `StreamStart`.
   */
  escalation(facts: RequestFacts, verdictan: Verdictan, exchangeId: string, textOnly?: boolean): unknown
}

/** Whether its requests cost nothing. */
export const isFree = ({ countsTokens, readsStored }: Dialect): boolean => countsTokens === true || readsStored === true

/** The estimated number of tokens of a text of this length: four characters a token, as providers advise. */
export const estimateTokens = (characters: number): number => Math.ceil(characters / 4)

/**
 * A dialect is one wire language that applications speak to the gateway: how to read the few fields the gateway acts
 * on, how to follow an answer as it passes, and how to say an error. Everything else in a body is passed on as bytes.
 * Adding one is a file and a line in `index.ts`.
 */
import type { Failure } from '../failure.ts'

export type Family =
  | 'chat'
  | 'responses'
  | 'messages'
  | 'embeddings'
  | 'transcriptions'
  | 'speech'
  | 'completions'
  | 'moderations'

/** The fields of a request that the gateway acts on. */
export interface RequestFacts {
  model: string
  stream: boolean
  /** The input in tokens, estimated from its text, for events of answers that report no usage. */
  inputEstimate: number
}

/** Token counts as the provider reported them; null where it did not. Input includes what was cached. */
export interface Usage {
  inputTokens: number | null
  outputTokens: number | null
  cachedInputTokens: number | null
  reasoningTokens: number | null
}

/** What one SSE frame means to the gateway. */
export interface FrameFacts {
  /** The frame ends the answer: it waits for the outcome to be recorded (protocols section 3). */
  terminal: boolean
  /** Characters of generated text in it, for estimates. */
  textLength: number
  usage: Usage | null
  /** The frame is the provider's own error; its code for the event. */
  error: string | null
}

/** What a whole answer means to the gateway. */
export interface AnswerFacts {
  usage: Usage | null
  /** Characters of generated text in it, for estimates. */
  textLength: number
}

export interface Dialect {
  family: Family
  /** `POST /v1/chat/completions` */
  route: string
  /** Reads a parsed body. Throws `invalid_parameter` naming the field where the gateway cannot act without it. */
  read(body: Record<string, unknown>): RequestFacts
  /** Reads a whole JSON answer. `body` is what the provider sent, parsed. */
  readAnswer(body: unknown): AnswerFacts
  /** Reads one SSE frame's data; called for each frame in order. */
  readFrame(data: string): FrameFacts
  /** The body of an error answer in this language. */
  errorBody(failure: Failure, requestId: string): unknown
  /** The bytes that end a stream which fails after it began. */
  errorFrames(failure: Failure, requestId: string): Uint8Array
  /** The bytes that end a stream after the provider itself sent an error frame. */
  readonly endFrames: Uint8Array
}

/** About how many tokens a text of this length makes: four characters each, as providers' own advice has it. */
export const estimateTokens = (characters: number): number => Math.ceil(characters / 4)

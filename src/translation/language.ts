/**
 * A text language as the translation knows it. Those that applications speak (chat, responses, messages) can do all of
 * it; those that only providers speak (gemini, converse) write requests and read answers. Adding one is a file and a
 * line in `index.ts`.
 */
import type { JsonObject } from '../dialects/json-value.ts'
import type { LanguageName, NeutralAnswer, NeutralError, NeutralEvent, NeutralRequest } from './neutral.ts'

/** What a provider is asked and how it answers. */
export interface ProviderLanguage {
  readonly name: LanguageName
  /** The body for the provider. Throws `translation_unsupported`, the caller's field named, for what it cannot say. */
  writeRequest(request: NeutralRequest): JsonObject
  /** Reads a whole JSON answer. Throws where it is none. */
  readAnswer(body: unknown): NeutralAnswer
  /** Reads an error's body; whatever it is, something is said. */
  readError(status: number, body: unknown): NeutralError
  /** A new reader for one streamed answer. */
  streamReader(): NeutralStreamReader
}

/** What an application asks and how it is answered. */
export interface CallerLanguage {
  readonly name: LanguageName
  /** Throws `translation_unsupported` for a member that has no place in the neutral form, naming it. */
  readRequest(body: Readonly<JsonObject>): NeutralRequest
  writeAnswer(answer: NeutralAnswer, asked: AnswerStart): JsonObject
  writeError(error: NeutralError): JsonObject
  streamWriter(asked: AnswerStart): NeutralStreamWriter
}

/** What a writer knows before the answer. */
export interface AnswerStart {
  /** The model's id as the caller used it. */
  model: string
  exchangeId: string
  /** The caller asked for a usage frame (`stream_options.include_usage`), or the gateway did for it. */
  includeUsage: boolean
}

/** Follows a provider's stream. `data` is the text of one SSE frame, or the JSON of one frame of an event stream. */
export interface NeutralStreamReader {
  frame(event: string | null, data: string): readonly NeutralEvent[]
  /** The provider's side has ended without saying so: gives what its language leaves unsaid; none where it broke off. */
  end(): readonly NeutralEvent[]
}

export interface NeutralStreamWriter {
  /** SSE frames as text, whole; empty where the event adds none. */
  event(event: NeutralEvent): string
}

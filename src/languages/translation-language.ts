/**
 * A text language as the translation knows it. Those that applications speak (chat, responses, messages) can do all of
 * it; those that only providers speak (gemini, converse) write requests and read answers. Adding one is a file and a
 * line in `languages/translation/languages.ts`.
 *
 * Why one neutral form in the middle, and not a translation for each pair: three callers and five providers are twelve
 * pairs, each of a request, an answer, a stream and an error; eight halves do the same work. Each feature is carried or
 * refused in one place for each language, so that the table of them can be made from the code, and a sixth language is
 * one more half and no new pair. The price of a middle form is usually loss; this one is a union of what the languages
 * say, not what all of them can say, and where a caller's own form says more (a citation) it is kept beside it. Where
 * caller and provider speak the same language there is no middle at all: bytes pass.
 */

import type { MemberTable } from './member-table.ts'
import type { LanguageName, NeutralAnswer, NeutralError, NeutralEvent, NeutralRequest } from './neutral.ts'
import type { JsonObject } from './reading/json-value.ts'

/** What a provider is asked and how it answers. */
export interface ProviderLanguage {
  readonly name: LanguageName
  /**
   * The body for the provider. Throws `translation_unsupported`, the caller's field named, for what it cannot say.
   * `catalogMaximum`: the model's most output tokens, for languages that need a limit where the caller gives none.
   */
  writeRequest(request: NeutralRequest, catalogMaximum?: number | null): JsonObject
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

/** A language as the map of languages and the table in `languages.md` hold it. */
export interface Language {
  readonly provider: ProviderLanguage
  /** null where no application speaks it. */
  readonly caller: CallerLanguage | null
  readonly features: FeatureTable
  /** The members of a caller's body; absent where no application speaks it. */
  readonly members?: MemberTable
}

/** What a request or an answer may say, by the name that the table gives it. */
export const features = {
  instructions: 'Instructions before the conversation',
  later_instructions: 'Instructions in its midst',
  speaker_name: "A speaker's name",
  image_url: 'Images by address',
  image_data: 'Images as bytes',
  image_file: 'Images by file id',
  image_detail: 'How closely an image is looked at',
  document_url: 'Documents by address',
  document_data: 'Documents as bytes',
  document_text: 'Documents as text',
  document_file: 'Documents by file id',
  document_citations: 'Asking for citations of a document',
  audio_data: 'Audio as bytes',
  tools: 'Tools',
  strict_tools: 'Tools whose arguments keep to their schema',
  tool_choice: 'Tool choice: auto, none, required',
  named_tool: 'Tool choice: one by name',
  parallel_tools: 'Parallel tool calls on or off',
  tool_calls: 'Tool calls of earlier turns',
  call_signature: 'The signature of a tool call',
  tool_results: 'Tool results as text',
  tool_result_media: 'Images and documents in tool results',
  tool_errors: 'Tool results that are errors',
  json_output: 'Output as JSON',
  schema_output: 'Output by a JSON schema',
  reasoning_effort: 'Reasoning by effort',
  reasoning_budget: 'Reasoning by a budget of tokens',
  thoughts: "The provider's own thoughts brought back, signed",
  redacted_thoughts: "The provider's own hidden thoughts brought back",
  foreign_thoughts: "Another provider's signed thoughts",
  refusals: 'Refusals of earlier turns',
  citations: 'Citations in earlier answers',
  max_output_tokens: 'Most output tokens',
  temperature: 'Temperature',
  top_p: 'Nucleus sampling (top_p)',
  top_k: 'Sampling from the k likeliest (top_k)',
  seed: 'Seed',
  frequency_penalty: 'Frequency penalty',
  presence_penalty: 'Presence penalty',
  stop: 'Stop sequences',
  end_user: "The caller's mark of an end user",
  cache_marker: 'Cache markers',
  answer_thoughts: 'Answers: thoughts, with their signatures',
  answer_citations: 'Answers: citations',
  answer_refusal: 'Answers: refusals',
  answer_stop_sequence: 'Answers: which stop sequence was met',
  answer_usage: 'Answers: cached, cache-write and reasoning tokens',
} as const

export type Feature = keyof typeof features

/**
 * What a language does with a feature: `as`, where it stands on the wire, and what of it is `refused` none the less;
 * `refused` alone, 400 with the caller's field, and why; `withoutEffect`, left out because leaving it out changes no
 * answer, and why. `said`: how a caller of the language says it where that is not `as`; null where it cannot.
 */
export type Support = { said?: string | null } & (
  | { as: string; refused?: string }
  | { refused: string }
  | { withoutEffect: string }
)

export type FeatureTable = Readonly<Record<Feature, Support>>

/**
 * A text language as the translation knows it. Languages that applications speak (chat, responses, messages,
 * gemini) implement all of it; one that only providers speak (converse) writes requests and reads answers. To add
 * one: a file, and a line in `languages/translation/languages.ts`.
 *
 * Why one neutral form, and not a translation for each pair: four callers and five providers make sixteen pairs, each
 * with a request, an answer, a stream and an error; nine halves do the same work. Each language carries or refuses a
 * feature in one place, so the table of features is generated from the code, and a sixth language is one more half
 * and no new pair. A neutral form usually loses information. This one is a union of what the languages can express,
 * not their intersection, and if a caller's own form says more (a citation) it is kept beside the neutral one. If
 * caller and provider speak the same language, bytes pass and the neutral form is not used.
 */

import type { MemberTable } from './member-table.ts'
import type { LanguageName, NeutralAnswer, NeutralError, NeutralEvent, NeutralRequest } from './neutral.ts'
import type { JsonObject } from './reading/json-value.ts'
import type { Lenience } from './translation/lenience.ts'

/** How to ask a provider and read its answers. */
export interface ProviderLanguage {
  readonly name: LanguageName
  /**
   * The body for the provider. Throws `translation_unsupported`, naming the caller's field, for what the language
   * cannot express.
   */
  writeRequest(request: NeutralRequest, options?: WriteOptions): JsonObject
  /** Reads a whole JSON answer. Throws if it is not one. */
  readAnswer(body: unknown): NeutralAnswer
  /** Reads an error's body, in any form; the result always has a message. */
  readError(status: number, body: unknown): NeutralError
  /** A new reader for one streamed answer. */
  streamReader(): NeutralStreamReader
}

/** Whether a translation refuses or leaves out what answers do not need (`translation/lenience.ts`). */
export const translationManners = ['lenient', 'strict'] as const

export interface WriteOptions {
  /** The model's most output tokens, for languages that need a limit if the caller gives none. */
  catalogMaximum?: number | null
  /** Collects what is left out; without it that is refused. */
  lenience?: Lenience | undefined
}

/** How to read an application's request and write its answer. */
export interface CallerLanguage {
  readonly name: LanguageName
  /**
   * Throws `translation_unsupported`, naming the member, for a member that has no place in the neutral form.
   * `lenience`: collects what is left out; without it that is refused.
   */
  readRequest(body: Readonly<JsonObject>, lenience?: Lenience): NeutralRequest
  writeAnswer(answer: NeutralAnswer, asked: AnswerStart): JsonObject
  writeError(error: NeutralError): JsonObject
  streamWriter(asked: AnswerStart): NeutralStreamWriter
}

/** What a writer knows before the answer. */
export interface AnswerStart {
  /** The model's id as the caller used it. */
  model: string
  exchangeId: string
  /** The caller asked for a usage frame (`stream_options.include_usage`), or the gateway did. */
  includeUsage: boolean
  /** The caller's body, for a language whose answers repeat it. */
  request?: Readonly<JsonObject>
}

/** Follows a provider's stream. `data` is the text of one SSE frame, or the JSON of one frame of an event stream. */
export interface NeutralStreamReader {
  frame(event: string | null, data: string): readonly NeutralEvent[]
  /**
   * The provider closed without an end marker: returns the events that its language implies then; none if the stream
   * was cut off.
   */
  end(): readonly NeutralEvent[]
}

export interface NeutralStreamWriter {
  /** Keeps the caller's connection alive; empty where clients read no comments. Absent: a comment. */
  readonly keepOpen?: string
  /** Complete SSE frames as text; empty if the event adds none. */
  event(event: NeutralEvent): string
}

/** A language as the map of languages and the table in `languages.md` hold it. */
export interface Language {
  readonly provider: ProviderLanguage
  /** null if no application speaks it. */
  readonly caller: CallerLanguage | null
  readonly features: FeatureTable
  /** The members of a caller's body; absent if no application speaks it. */
  readonly members?: MemberTable
}

/** Features of a request or an answer, by their names in the table. */
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
 * What a language does with a feature: `as`, its form on the wire, and the part of it that is `refused` nevertheless;
 * `refused` alone: 400 with the caller's field, and the reason; `withoutEffect`: left out because the answer does not
 * depend on it, and the reason. `said`: the form of a caller of the language if it differs from `as`; null if a
 * caller cannot use it.
 */
export type Support = { said?: string | null } & (
  | { as: string; refused?: string }
  | { refused: string }
  | { withoutEffect: string }
)

export type FeatureTable = Readonly<Record<Feature, Support>>

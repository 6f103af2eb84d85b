/**
 * The neutral form of the text languages: a request, an answer, and the events of a streamed answer. Each language
 * (`translation-language.ts` explains why there is one form and no pairs) reads its own wire form into this one and
 * writes its own from it.
 *
 * It is a union, not a common denominator: everything that one language can express has a member here. A writer whose
 * language cannot express a member refuses the request and names the caller's own field (`at`), or leaves out with a
 * note what the answer hardly depends on (`translation/lenience.ts`). Nothing is made up. The form is used only if the caller's dialect and the provider's differ; otherwise bodies pass as bytes.
 */
import type { Usage } from './dialect.ts'

/** The path of a value in the caller's body, for error messages: `messages.2.content.0`, `top_k`. */
export type FieldPath = string

export interface NeutralRequest {
  model: string
  /** Instructions before the conversation, in order; instructions inside it are turns of `system`. */
  instructions: readonly NeutralText[]
  turns: readonly NeutralTurn[]
  tools: readonly NeutralTool[]
  toolChoice: Stated<'auto' | 'none' | 'required' | { name: string }> | null
  parallelTools: Stated<boolean> | null
  output: Stated<NeutralOutput> | null
  reasoning: Stated<NeutralReasoning> | null
  /** Numbers and words that steer the model; only those that the caller gave. */
  sampling: {
    maxOutputTokens?: Stated<number>
    temperature?: Stated<number>
    topP?: Stated<number>
    topK?: Stated<number>
    seed?: Stated<number>
    frequencyPenalty?: Stated<number>
    presencePenalty?: Stated<number>
    stop?: Stated<readonly string[]>
  }
  /** The caller's own identifier of an end user: `user`, `safety_identifier`, `metadata.user_id`. */
  endUser: Stated<string> | null
  stream: boolean
  /**
   * Members that only some languages have, by their name in the caller's language: `verbosity`, `service_tier`,
   * `store`.
   */
  extras: ReadonlyMap<string, Stated<unknown>>
  /**
   * Members that do not change the answer (`prompt_cache_key`, `metadata`): carried if the provider's language has the
   * same member, otherwise left out.
   */
  hints?: ReadonlyMap<string, Stated<unknown>>
}

/** A value and the field in which the caller gave it. */
export interface Stated<Value> {
  readonly value: Value
  readonly at: FieldPath
}

export interface NeutralTurn {
  /** `tool` turns hold tool results only. */
  role: 'system' | 'user' | 'assistant' | 'tool'
  parts: readonly NeutralPart[]
  /** The speaker's name, if the language has one. */
  name?: Stated<string>
  at: FieldPath
}

export type NeutralPart =
  | NeutralText
  | NeutralMedia
  | NeutralToolCall
  | NeutralToolResult
  | NeutralThought
  | NeutralRefusal

interface Placed {
  at: FieldPath
  /** A cache marker: the provider may keep everything up to here in its cache. */
  cache?: Stated<{ ttl: '5m' | '1h' | null }>
}

export interface NeutralText extends Placed {
  kind: 'text'
  text: string
  citations?: readonly NeutralCitation[]
}

export interface NeutralMedia extends Placed {
  kind: 'image' | 'document' | 'audio'
  /** `image/png`; null if the provider fetches it and the caller does not say. */
  mediaType: string | null
  source: { base64: string } | { url: string } | { text: string } | { fileId: string }
  /** A document's name or title. */
  title?: string
  /** How much image detail the model uses: `low`, `high`, `auto`. */
  detail?: Stated<string>
  /** Whether answers should cite this document. */
  citations?: Stated<boolean>
}

export interface NeutralToolCall extends Placed {
  kind: 'tool_call'
  id: string
  name: string
  /** JSON text, as the model wrote it. */
  arguments: string
  /** Opaque data that the provider needs back with the call in a later turn (Gemini's thought signature). */
  signature?: CallSignature
}

/** Opaque; only the provider whose language it belongs to can use it. */
export interface CallSignature {
  text: string
  language: LanguageName
}

export interface NeutralToolResult extends Placed {
  kind: 'tool_result'
  callId: string
  /** The call's name: from the message itself, or found among the earlier turns. */
  name: string | null
  parts: readonly (NeutralText | NeutralMedia)[]
  isError: boolean
}

/** The model's thoughts before its answer. A later turn may have to bring them back with the signature. */
export interface NeutralThought extends Placed {
  kind: 'thought'
  text: string
  signature: string | null
  /** Thinking that only its provider can read; `text` is empty. */
  redacted: string | null
  /** The language of the signature or redacted text: another provider's cannot be brought back. */
  language: LanguageName | null
}

export interface NeutralRefusal extends Placed {
  kind: 'refusal'
  text: string
}

export interface NeutralCitation {
  /** The cited source: a title, an address, the text. */
  title: string | null
  url: string | null
  citedText: string | null
  /** The language's own form, used if the target has the same language. */
  original: Readonly<Record<string, unknown>>
}

export interface NeutralTool extends Placed {
  name: string
  description: string | null
  /** JSON Schema of the arguments; null if there is none. */
  parameters: Readonly<Record<string, unknown>> | null
  strict: boolean | null
}

export type NeutralOutput =
  | { form: 'text' }
  | { form: 'json' }
  | {
      form: 'schema'
      name: string | null
      description: string | null
      schema: Readonly<Record<string, unknown>>
      strict: boolean | null
    }

/** In rising order. */
export const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const

export type Effort = (typeof efforts)[number]

export interface NeutralReasoning {
  /** null if the caller gave a budget or only asked to see the thoughts. */
  effort: Effort | null
  /** 0, with the effort `none`, if the caller switched thinking off instead of asking for an effort. */
  budgetTokens: number | null
  /** Whether the answer should contain thoughts, or a summary of them. */
  visible: boolean | null
}

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'refusal' | 'content_filter' | 'pause' | 'error'

export interface NeutralAnswer {
  /** The provider's own id of the answer; null if it has none. */
  id: string | null
  /** The model's name as the provider gives it. */
  model: string | null
  parts: readonly NeutralPart[]
  finish: FinishReason
  /** The stop sequence that was met, if the language reports which. */
  stopSequence: string | null
  usage: Usage | null
}

/**
 * One event of a streamed answer. Parts are numbered from 0 in the order in which they begin. Events of different
 * parts may alternate (parallel tool calls).
 */
export type NeutralEvent =
  | { type: 'start'; id: string | null; model: string | null }
  | { type: 'part'; part: number; kind: 'text' | 'refusal' }
  /** `language`: the language of the provider that produced the thought. */
  | { type: 'part'; part: number; kind: 'thought'; language: LanguageName }
  | { type: 'part'; part: number; kind: 'tool_call'; id: string; name: string }
  /** Text of the part, or of a tool call's arguments. */
  | { type: 'text'; part: number; text: string }
  | { type: 'citation'; part: number; citation: NeutralCitation }
  /**
   * The signature of a thought or a call, or thinking that only its provider can read. `language`: the language it
   * belongs to.
   */
  | { type: 'signature'; part: number; signature: string; redacted: boolean; language: LanguageName }
  /** `abandoned`: the provider began its message again before the part was complete. */
  | { type: 'part_end'; part: number; abandoned?: true }
  | { type: 'usage'; usage: Usage }
  | { type: 'finish'; finish: FinishReason; stopSequence: string | null }
  | { type: 'error'; error: NeutralError }
  /** The provider's stream is complete: no event follows. */
  | { type: 'end' }

export interface NeutralError {
  /** null in a stream that has begun. */
  status: number | null
  code: string | null
  message: string
}

export const languageNames = ['chat', 'responses', 'messages', 'gemini', 'converse'] as const

export type LanguageName = (typeof languageNames)[number]

/**
 * What the text languages have in common, as data: a request, an answer, and the events of a streamed answer. A language
 * (`translation-language.ts`, which says why there is one form and no pairs) reads its own wire form into this and writes it out of
 * this.
 *
 * It is a union, not a common denominator: whatever one language can say has a member here, and who writes a language
 * that cannot say it refuses with the caller's own field named (`at`). Nothing is dropped, and nothing is made up.
 * It is entered only where the caller's dialect and the provider's differ; equal ones pass bytes.
 */
import type { Usage } from './dialect.ts'

/** Where something stands in the caller's body, as an error names it: `messages.2.content.0`, `top_k`. */
export type FieldPath = string

export interface NeutralRequest {
  model: string
  /** Instructions that stand before the conversation, in order; those in its midst are turns of `system`. */
  instructions: readonly NeutralText[]
  turns: readonly NeutralTurn[]
  tools: readonly NeutralTool[]
  toolChoice: Stated<'auto' | 'none' | 'required' | { name: string }> | null
  parallelTools: Stated<boolean> | null
  output: Stated<NeutralOutput> | null
  reasoning: Stated<NeutralReasoning> | null
  /** Numbers and words that steer the model; each only where the caller gave it. */
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
  /** The caller's own mark of an end user: `user`, `safety_identifier`, `metadata.user_id`. */
  endUser: Stated<string> | null
  stream: boolean
  /** Members of the caller's language that only some languages have, by their name: `verbosity`, `service_tier`, `store`. */
  extras: ReadonlyMap<string, Stated<unknown>>
  /**
   * Members that change nothing of what is answered (`prompt_cache_key`, `metadata`): carried where the provider's
   * language has the same, and left out where it has not.
   */
  hints?: ReadonlyMap<string, Stated<unknown>>
}

/** A value and the field that the caller gave it by. */
export interface Stated<Value> {
  readonly value: Value
  readonly at: FieldPath
}

export interface NeutralTurn {
  /** `tool` turns hold tool results only. */
  role: 'system' | 'user' | 'assistant' | 'tool'
  parts: readonly NeutralPart[]
  /** The speaker's name, where the language has one. */
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
  /** A marker that all up to here may be kept in the provider's cache. */
  cache?: Stated<{ ttl: '5m' | '1h' | null }>
}

export interface NeutralText extends Placed {
  kind: 'text'
  text: string
  citations?: readonly NeutralCitation[]
}

export interface NeutralMedia extends Placed {
  kind: 'image' | 'document' | 'audio'
  /** `image/png`; null where it is fetched and the caller does not say. */
  mediaType: string | null
  source: { base64: string } | { url: string } | { text: string } | { fileId: string }
  /** A document's name or title. */
  title?: string
  /** How closely an image is looked at: `low`, `high`, `auto`. */
  detail?: Stated<string>
  /** Whether answers are to cite this document. */
  citations?: Stated<boolean>
}

export interface NeutralToolCall extends Placed {
  kind: 'tool_call'
  id: string
  name: string
  /** JSON text, as the model wrote it. */
  arguments: string
  /** What a provider needs back with the call in a later turn (Gemini's thought signature). */
  signature?: CallSignature
}

/** Opaque, and of use to nobody but the provider whose language it is of. */
export interface CallSignature {
  text: string
  language: LanguageName
}

export interface NeutralToolResult extends Placed {
  kind: 'tool_result'
  callId: string
  /** Of the call, where the language says it, or found among the earlier turns. */
  name: string | null
  parts: readonly (NeutralText | NeutralMedia)[]
  isError: boolean
}

/** What the model thought before it spoke; a later turn may have to bring it back, with the signature. */
export interface NeutralThought extends Placed {
  kind: 'thought'
  text: string
  signature: string | null
  /** Thinking that only its provider can read; `text` is empty. */
  redacted: string | null
  /** Whose signature or redacted text it is: another provider's cannot be brought back. */
  language: LanguageName | null
}

export interface NeutralRefusal extends Placed {
  kind: 'refusal'
  text: string
}

export interface NeutralCitation {
  /** What is cited: a title, an address, the text. */
  title: string | null
  url: string | null
  citedText: string | null
  /** The language's own form, for a target of the same language. */
  original: Readonly<Record<string, unknown>>
}

export interface NeutralTool extends Placed {
  name: string
  description: string | null
  /** JSON Schema of the arguments; null where there is none. */
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
  /** null where the caller gave a budget or only asked to see it. */
  effort: Effort | null
  /** 0, with the effort `none`, where thinking was switched off rather than an effort asked for. */
  budgetTokens: number | null
  /** Whether thoughts, or a summary of them, are to be in the answer. */
  visible: boolean | null
}

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'refusal' | 'content_filter' | 'pause' | 'error'

export interface NeutralAnswer {
  /** The provider's own id for it; null where it has none. */
  id: string | null
  /** As the provider names it. */
  model: string | null
  parts: readonly NeutralPart[]
  finish: FinishReason
  /** The stop sequence that was met, where the language says which. */
  stopSequence: string | null
  usage: Usage | null
}

/**
 * One event of a streamed answer. Parts are numbered from 0 in the order in which they begin, and what belongs to one may
 * come between what belongs to another (parallel tool calls).
 */
export type NeutralEvent =
  | { type: 'start'; id: string | null; model: string | null }
  | { type: 'part'; part: number; kind: 'text' | 'refusal' }
  /** `language`: whose thought it is. */
  | { type: 'part'; part: number; kind: 'thought'; language: LanguageName }
  | { type: 'part'; part: number; kind: 'tool_call'; id: string; name: string }
  /** Text of the part, or of a tool call's arguments. */
  | { type: 'text'; part: number; text: string }
  | { type: 'citation'; part: number; citation: NeutralCitation }
  /** The signature of a thought or a call, or thinking that only its provider can read; `language`: whose it is. */
  | { type: 'signature'; part: number; signature: string; redacted: boolean; language: LanguageName }
  /** `abandoned`: the provider began its message again before the part was whole. */
  | { type: 'part_end'; part: number; abandoned?: true }
  | { type: 'usage'; usage: Usage }
  | { type: 'finish'; finish: FinishReason; stopSequence: string | null }
  | { type: 'error'; error: NeutralError }
  /** The provider's stream is whole: nothing follows. */
  | { type: 'end' }

export interface NeutralError {
  /** null in a stream that has begun. */
  status: number | null
  code: string | null
  message: string
}

export const languageNames = ['chat', 'responses', 'messages', 'gemini', 'converse'] as const

export type LanguageName = (typeof languageNames)[number]

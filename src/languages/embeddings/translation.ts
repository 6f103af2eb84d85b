/**
 * Embeddings as OpenAI's clients ask for them, of providers that have another language for them
 * (`languages/gemini/embeddings.ts`, `languages/converse/embeddings.ts`): the one family beside the text families
 * that is translated. Providers of the kind anthropic have none.
 *
 * Where one call of the provider takes fewer texts than the caller sends it is several calls, whose vectors and tokens
 * are put together in the order of the texts. Vectors go out as numbers or, as the official client asks unless it is
 * told otherwise, as the base64 of 32-bit floats. What is no vector of such numbers, or of another length than the
 * rest, is the provider's failure.
 */
import { estimateTokens } from '../dialect.ts'
import type { MemberTable } from '../member-table.ts'
import type { NeutralError, Stated } from '../neutral.ts'
import type { JsonObject } from '../reading/json-value.ts'
import { arrayAt, checkMembers, statedNumber, statedString, stringAt } from '../translation/field-readers.ts'
import { UnreadableAnswer } from '../translation/translate-response.ts'
import { malformed, unsupported } from '../translation/translation-errors.ts'

export interface EmbeddingLanguage {
  members: MemberTable
  /** Texts that one call takes at most. */
  mostTexts: number
  /** Throws, naming the field, for what the model has no member for. */
  write(texts: readonly string[], settings: EmbeddingSettings): JsonObject
  read(answer: unknown, headers: Headers): Embedded
  readError(status: number, body: unknown): NeutralError
}

export interface EmbeddingSettings {
  dimensions: Stated<number> | null
  /** The purpose of the vectors, for models that distinguish purposes. */
  inputType: Stated<string> | null
}

export interface Embedded {
  vectors: readonly unknown[]
  /** Tokens of the input; null if the provider does not report them. */
  tokens: number | null
}

/** One call to the provider. */
export interface EmbeddingCall {
  body: JsonObject
  /** How many texts it holds. */
  texts: number
  /** Estimated tokens of its texts. */
  estimate: number
}

/** The calls that the request needs. Throws, naming the field, for what the provider cannot express. */
export function writeEmbeddings(body: Readonly<JsonObject>, language: EmbeddingLanguage): EmbeddingCall[] {
  checkMembers(body, language.members)
  formatOf(body)
  const settings = {
    dimensions: statedNumber(body.dimensions, 'dimensions'),
    inputType: statedString(body.input_type, 'input_type'),
  }
  const size = settings.dimensions?.value ?? 1
  if (!Number.isInteger(size) || size < 1) throw malformed('dimensions', 'an integer of at least 1')
  const texts = textsOf(body.input)
  const { mostTexts } = language
  return Array.from({ length: Math.ceil(texts.length / mostTexts) }, (_, call) => {
    const some = texts.slice(call * mostTexts, (call + 1) * mostTexts)
    const characters = some.reduce((sum, text) => sum + text.length, 0)
    return { body: language.write(some, settings), texts: some.length, estimate: estimateTokens(characters) }
  })
}

/** OpenAI's limit (API reference, Create embeddings); without one, a request could cause any number of calls. */
const mostInput = 2048

function textsOf(input: unknown): string[] {
  if (typeof input === 'string') return [input]
  const texts = arrayAt(input, 'input')
  if (texts.length === 0 || texts.length > mostInput) {
    throw malformed('input', `a text, or an array of 1 to ${mostInput} texts`)
  }
  return texts.map((text, index) => {
    if (typeof text === 'number' || Array.isArray(text))
      throw unsupported('input', 'other providers count tokens otherwise')
    return stringAt(text, `input.${index}`)
  })
}

function formatOf(body: Readonly<JsonObject>): 'float' | 'base64' {
  const format = statedString(body.encoding_format, 'encoding_format')?.value ?? 'float'
  if (format === 'float' || format === 'base64') return format
  throw malformed('encoding_format', 'float or base64')
}

export interface EmbeddingItem {
  /** One of the answer's `data`, as JSON. */
  text: string
  /** The vector's length. */
  size: number
}

/** A vector in the form that the request `asked` for. Throws if it is not a vector. */
export function writeItem(vector: unknown, index: number, asked: Readonly<JsonObject>): EmbeddingItem {
  if (!isVector(vector)) throw new UnreadableAnswer('The provider sent no vector')
  const embedding = formatOf(asked) === 'base64' ? base64Of(vector) : vector
  return { text: JSON.stringify({ object: 'embedding', index, embedding }), size: vector.length }
}

/** At least one number, each within the range of a 32-bit float. */
const isVector = (vector: unknown): vector is number[] =>
  Array.isArray(vector) &&
  vector.length > 0 &&
  vector.every((number) => typeof number === 'number' && Number.isFinite(Math.fround(number)))

const base64Of = (vector: readonly number[]): string => Buffer.from(Float32Array.from(vector).buffer).toString('base64')

/** The members around the items in the answer's JSON; `tokens` of the input. */
export const aroundItems = (asked: Readonly<JsonObject>, tokens: number): { before: string; after: string } => ({
  before: '{"object":"list","data":[',
  after: `],"model":${JSON.stringify(asked.model)},"usage":{"prompt_tokens":${tokens},"total_tokens":${tokens}}}`,
})

/**
 * Embeddings as OpenAI's clients ask for them, of providers that have another language for them (`gemini-embeddings.ts`,
 * `bedrock-embeddings.ts`): the one family beside the text families that is translated. Providers of the kind anthropic
 * have none.
 *
 * Where one call of the provider takes fewer texts than the caller sends it is several calls, whose vectors and tokens
 * are put together in the order of the texts. Vectors go out as numbers or, as the official client asks unless it is told
 * otherwise, as the base64 of 32-bit floats.
 */
import type { JsonObject } from '../dialects/json-value.ts'
import type { MemberTable } from './language.ts'
import { arrayAt, checkMembers, statedNumber, statedString, stringAt } from './members.ts'
import type { NeutralError, Stated } from './neutral.ts'
import { malformed, unsupported, unusable } from './refusals.ts'

export interface EmbeddingLanguage {
  members: MemberTable
  /** Texts that one call takes at most. */
  mostTexts: number
  /** Throws for what the model cannot be told, the field named. */
  write(texts: readonly string[], settings: EmbeddingSettings): JsonObject
  read(answer: unknown, headers: Headers): Embedded
  readError(status: number, body: unknown): NeutralError
}

export interface EmbeddingSettings {
  dimensions: Stated<number> | null
  /** What the vectors are for, where the provider's models tell such uses apart. */
  inputType: Stated<string> | null
}

export interface Embedded {
  vectors: readonly unknown[]
  /** Of the input; null where the provider does not say. */
  tokens: number | null
}

export const embeddingMembers: MemberTable = {
  model: 'carried',
  input: 'carried',
  dimensions: 'carried',
  encoding_format: 'carried',
  user: { withoutEffect: 'it has no place for it, and vectors do not depend on it' },
}

/** The bodies of the calls that the request takes. Throws for what the provider cannot be told, the field named. */
export function writeEmbeddings(body: Readonly<JsonObject>, language: EmbeddingLanguage): JsonObject[] {
  checkMembers(body, language.members)
  formatOf(body)
  const settings = {
    dimensions: statedNumber(body.dimensions, 'dimensions'),
    inputType: statedString(body.input_type, 'input_type'),
  }
  const texts = textsOf(body.input)
  const { mostTexts } = language
  return Array.from({ length: Math.ceil(texts.length / mostTexts) }, (_, call) =>
    language.write(texts.slice(call * mostTexts, (call + 1) * mostTexts), settings),
  )
}

/** As OpenAI has it (API reference, Create embeddings): one request would be calls without number. */
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

/** `asked`: the body of the request. Throws where there is not one vector for each of its texts. */
export function readEmbeddings(calls: readonly Embedded[], asked: Readonly<JsonObject>): JsonObject {
  const vectors = calls.flatMap((call) => call.vectors)
  if (vectors.length !== textsOf(asked.input).length) throw unusable('The provider sent another number of vectors')
  const written = formatOf(asked) === 'base64' ? base64Of : (vector: unknown) => vector
  return {
    object: 'list',
    data: vectors.map((vector, index) => ({ object: 'embedding', index, embedding: written(vector) })),
    model: asked.model,
    ...embeddingUsage(calls),
  }
}

/** None where one of the calls does not say. */
export function embeddingUsage(calls: readonly Embedded[]): JsonObject {
  const tokens = calls.reduce<number | null>((sum, call) => addedTo(sum, call.tokens), 0)
  return tokens === null || calls.length === 0 ? {} : { usage: { prompt_tokens: tokens, total_tokens: tokens } }
}

const addedTo = (sum: number | null, tokens: number | null): number | null =>
  sum === null || tokens === null ? null : sum + tokens

function base64Of(vector: unknown): string {
  if (!Array.isArray(vector)) throw unusable('The provider sent no vector')
  return Buffer.from(Float32Array.from(vector.map(Number)).buffer).toString('base64')
}

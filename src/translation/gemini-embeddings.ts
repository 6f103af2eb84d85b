/**
 * Embeddings as OpenAI's clients ask for them, of Gemini (Gemini API v1beta, `models.batchEmbedContents`: requests of
 * `model`, `content`, `outputDimensionality`; answers of `embeddings` with `values`, in the same order). It is the one
 * family beside the text families that is translated: providers of the kinds anthropic and bedrock are asked for text
 * alone, and a model of theirs refuses other families by `model_family_unsupported`.
 *
 * Vectors go out as numbers or, as the official client asks unless it is told otherwise, as the base64 of 32-bit floats.
 */
import { isObject, type JsonObject, objectsOf } from '../dialects/json-value.ts'
import type { MemberTable } from './language.ts'
import { arrayAt, checkMembers, statedNumber, statedString, stringAt } from './members.ts'
import { malformed, unsupported, unusable } from './refusals.ts'

export const embeddingMembers: MemberTable = {
  model: 'carried',
  input: 'carried',
  dimensions: 'carried',
  encoding_format: 'carried',
  user: { withoutEffect: 'it has no place for it, and vectors do not depend on it' },
}

/** `model` as its path has it, `models/gemini-embedding-001`. Throws for what Gemini cannot be told, the field named. */
export function writeGeminiEmbeddings(body: Readonly<JsonObject>, model: string): JsonObject {
  checkMembers(body, embeddingMembers)
  formatOf(body)
  const dimensions = statedNumber(body.dimensions, 'dimensions')
  const limited = dimensions === null ? {} : { outputDimensionality: dimensions.value }
  return {
    requests: textsOf(body.input).map((text) => ({ model, content: { parts: [{ text }] }, ...limited })),
  }
}

function textsOf(input: unknown): string[] {
  if (typeof input === 'string') return [input]
  return arrayAt(input, 'input').map((text, index) => {
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
export function readGeminiEmbeddings(answer: unknown, asked: Readonly<JsonObject>): JsonObject {
  const vectors = isObject(answer) ? objectsOf(answer.embeddings).map(({ values }) => values) : []
  if (vectors.length !== textsOf(asked.input).length) throw unusable('The provider sent another number of vectors')
  const written = formatOf(asked) === 'base64' ? base64Of : (vector: unknown) => vector
  const usage = isObject(answer) && isObject(answer.usageMetadata) ? answer.usageMetadata.promptTokenCount : null
  return {
    object: 'list',
    data: vectors.map((vector, index) => ({ object: 'embedding', index, embedding: written(vector) })),
    model: asked.model,
    ...(typeof usage === 'number' && { usage: { prompt_tokens: usage, total_tokens: usage } }),
  }
}

function base64Of(vector: unknown): string {
  if (!Array.isArray(vector)) throw unusable('The provider sent no vector')
  return Buffer.from(Float32Array.from(vector.map(Number)).buffer).toString('base64')
}

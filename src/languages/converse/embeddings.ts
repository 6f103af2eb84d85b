/**
 * Embeddings at AWS Bedrock by InvokeModel, whose bodies are each maker's own (Bedrock user guide, model parameters):
 *
 * - Amazon Titan Text Embeddings: `inputText`, one text a call, `dimensions` from the second version on; answered by
 *   `embedding` and `inputTextTokenCount`.
 * - Cohere Embed: `texts`, up to 96, and `input_type`, which it has to be told: documents to be searched where the
 *   caller
 *   gives none; `output_dimension` from the fourth version on. Answered by `embeddings`, an array of vectors or, from the
 *   third version on, one for each type that was asked for. Its tokens are told in a header.
 *
 * Which maker's a model is stands in its id, that of its inference profile, or the ARN of either.
 */

import { Failure } from '../../failure.ts'
import { embeddingMembers } from '../embeddings/members.ts'
import type { EmbeddingLanguage } from '../embeddings/translation.ts'
import type { MemberTable } from '../member-table.ts'
import { countOf, isObject } from '../reading/json-value.ts'
import { unsupported } from '../translation/translation-errors.ts'
import { readConverseError } from './answers.ts'

export const bedrockEmbeddingMembers: MemberTable = {
  ...embeddingMembers,
  input_type: { translation: 'carried' },
}

const tokensHeader = 'x-amzn-bedrock-input-token-count'

const tokensIn = (headers: Headers): number | null => countOf(headers.get(tokensHeader))

const titan = (model: string): EmbeddingLanguage => ({
  members: bedrockEmbeddingMembers,
  mostTexts: 1,
  write([inputText], { dimensions, inputType }) {
    if (inputType !== null) throw unsupported(inputType.at, 'this model makes the same vectors for every use')
    if (dimensions === null) return { inputText }
    if (!/titan-embed-text-v[2-9]/.test(model))
      throw unsupported(dimensions.at, 'the vectors of this model have one size')
    return { inputText, dimensions: dimensions.value }
  },
  read: (answer, headers) => ({
    vectors: isObject(answer) && Array.isArray(answer.embedding) ? [answer.embedding] : [],
    tokens: (isObject(answer) ? countOf(answer.inputTextTokenCount) : null) ?? tokensIn(headers),
  }),
  readError: readConverseError,
})

const cohere = (model: string): EmbeddingLanguage => ({
  members: bedrockEmbeddingMembers,
  mostTexts: 96,
  write(texts, { dimensions, inputType }) {
    const body = { texts, input_type: inputType?.value ?? 'search_document', embedding_types: ['float'] }
    if (dimensions === null) return body
    if (/embed-.*v[1-3]/.test(model)) throw unsupported(dimensions.at, 'the vectors of this model have one size')
    return { ...body, output_dimension: dimensions.value }
  },
  read(answer, headers) {
    const given = isObject(answer) ? answer.embeddings : null
    const vectors = isObject(given) ? given.float : given
    return { vectors: Array.isArray(vectors) ? vectors : [], tokens: tokensIn(headers) }
  },
  readError: readConverseError,
})

/** Throws `model_family_unsupported` for a model that is not a known embedding model. */
export function bedrockEmbeddings(model: string): EmbeddingLanguage {
  if (/(?:^|[./])amazon\.titan-embed-text/.test(model)) return titan(model)
  if (/(?:^|[./])cohere\.embed/.test(model)) return cohere(model)
  const message = 'Of the models at Bedrock, Amazon Titan Text Embeddings and Cohere Embed are served on this route'
  throw new Failure('model_family_unsupported', { param: 'model', message })
}

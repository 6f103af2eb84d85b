/**
 * Embeddings of Gemini (Gemini API v1beta, `models.batchEmbedContents`: requests of `model`, `content`,
 * `outputDimensionality`; answers of `embeddings` with `values`, in the same order).
 */

import { embeddingMembers } from '../embeddings/members.ts'
import type { EmbeddingLanguage } from '../embeddings/translation.ts'
import { countOf, isObject, objectsOf } from '../reading/json-value.ts'
import { readGeminiError } from './answers.ts'

/** `model` as its path has it, `models/gemini-embedding-001`. */
export const geminiEmbeddings = (model: string): EmbeddingLanguage => ({
  members: embeddingMembers,
  mostTexts: 100,
  write: (texts, { dimensions }) => ({
    requests: texts.map((text) => ({
      model,
      content: { parts: [{ text }] },
      ...(dimensions !== null && { outputDimensionality: dimensions.value }),
    })),
  }),
  read: (answer) => ({
    vectors: isObject(answer) ? objectsOf(answer.embeddings).map(({ values }) => values) : [],
    tokens: isObject(answer) && isObject(answer.usageMetadata) ? countOf(answer.usageMetadata.promptTokenCount) : null,
  }),
  readError: readGeminiError,
})

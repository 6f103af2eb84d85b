/**
 * Rerank, `POST /v1/rerank`, as Cohere, Jina, vLLM and others have it: a query and documents in, their order with
 * scores out, as JSON, never a stream. Policies read the query and the documents.
 */
import { Failure } from '../../failure.ts'
import { type Dialect, estimateTokens, type Usage } from '../dialect.ts'
import { eventReader } from '../reading/frames/event-reader.ts'
import { countOf, isObject, type JsonObject } from '../reading/json-value.ts'
import { modelOf } from '../reading/request-fields.ts'
import { requestOnly, tokenMember } from '../reading/request-only.ts'
import { textReader } from '../reading/texts/request-texts.ts'
import { textLength } from '../reading/texts/texts.ts'
import { rerankMembers } from './members.ts'

export const rerank: Dialect = {
  ...requestOnly,
  family: 'rerank',

  read(body) {
    const { query, documents } = body
    const count = Array.isArray(documents) ? documents.length : 0
    if (count === 0) {
      throw new Failure('invalid_parameter', {
        param: 'documents',
        message: 'documents must be a list with an element',
      })
    }
    return {
      model: modelOf(body),
      stream: false,
      // The model reads the query with each document.
      inputEstimate: estimateTokens(textLength(query) * count + textLength(documents)),
      outputLimit: 0,
      choices: 1,
      beyondBody: false,
      repeatedBytes: repeatedBytes(query, documents, count),
      unbounded: null,
      sessionId: null,
    }
  },

  requestText: textReader(rerankMembers, {}),
  tokenInput: (body) => tokenMember(body),
  readAnswer: (body) => ({ usage: isObject(body) ? usageOf(body) : null, textLength: 0 }),
  reader: () => eventReader({ read: () => ({}), endsWithDone: false }),
}

/** Fewer bytes than a piece has into which a provider cuts a long document. */
const leastPieceBytes = 256
/** What templates put around each pair. */
const pairAllowance = 16

/** The query is read again with each document, and with each piece of a long one. */
function repeatedBytes(query: unknown, documents: unknown, count: number): number {
  const bytes = (value: unknown) => Buffer.byteLength(JSON.stringify(value) ?? '')
  const pieces = count + Math.ceil(bytes(documents) / leastPieceBytes)
  return pieces * (bytes(query) + pairAllowance)
}

/** Jina and vLLM report `usage`, Cohere `meta.tokens`. */
function usageOf({ usage, meta }: JsonObject): Usage | null {
  const tokens = isObject(meta) && isObject(meta.tokens) ? meta.tokens : {}
  const reported = isObject(usage) ? usage : {}
  const inputTokens = countOf(reported.prompt_tokens ?? reported.total_tokens ?? tokens.input_tokens)
  if (inputTokens === null) return null
  return { inputTokens, outputTokens: 0, cachedInputTokens: null, cacheWriteTokens: null, reasoningTokens: null }
}

/** Embeddings, `POST /v1/embeddings`: text or tokens in, vectors out as JSON, never a stream. */
import { type Dialect, estimateTokens } from '../dialect.ts'
import { eventReader } from '../reading/frames/event-reader.ts'
import { countOf, isObject } from '../reading/json-value.ts'
import { modelOf } from '../reading/request-fields.ts'
import { inputLength, requestOnly, tokenMember } from '../reading/request-only.ts'
import { textReader } from '../reading/texts/request-texts.ts'
import { embeddingMembers } from './members.ts'

export const embeddings: Dialect = {
  ...requestOnly,
  family: 'embeddings',

  read: (body) => ({
    model: modelOf(body),
    stream: false,
    inputEstimate: estimateTokens(inputLength(body.input)),
    outputLimit: 0,
    choices: 1,
    beyondBody: false,
    unbounded: null,
    sessionId: null,
  }),

  requestText: textReader(embeddingMembers, {}),
  tokenInput: (body) => tokenMember(body, 'input'),

  readAnswer(body) {
    const usage = isObject(body) && isObject(body.usage) ? body.usage : {}
    const inputTokens = countOf(usage.prompt_tokens) ?? countOf(usage.total_tokens)
    if (inputTokens === null) return { usage: null, textLength: 0 }
    return {
      usage: { inputTokens, outputTokens: 0, cachedInputTokens: null, cacheWriteTokens: null, reasoningTokens: null },
      textLength: 0,
    }
  },

  reader: () => eventReader({ read: () => ({}), endsWithDone: true }),
}

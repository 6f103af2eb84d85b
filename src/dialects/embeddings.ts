/** Embeddings, `POST /v1/embeddings`: text or tokens in, vectors out as JSON, never a stream. */
import { type Dialect, estimateTokens } from './dialect.ts'
import { eventReader } from './event-reader.ts'
import { modelOf } from './facts.ts'
import { countOf, isObject } from './json-value.ts'
import { inputLength, inputSlots, requestOnly, tokenMember } from './request-only.ts'
import { restSlots } from './texts.ts'

export const embeddings: Dialect = {
  ...requestOnly,
  family: 'embeddings',
  route: 'POST /v1/embeddings',

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

  requestText: (body) => [...inputSlots(body, 'input'), ...restSlots(body, ['input'])],
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

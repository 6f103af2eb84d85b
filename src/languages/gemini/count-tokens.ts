/**
 * `POST /v1beta/models/{model}:countTokens`: a request of the Gemini language that asks only how many tokens its input
 * has. The same policies read its texts. Its answer is `{"totalTokens": 42}`.
 */
import type { Dialect } from '../dialect.ts'
import { gemini } from './dialect.ts'

export const countTokens: Dialect = {
  ...gemini,
  countsTokens: true,
  countBody: (totalTokens) => ({ totalTokens }),
  read: (body) => ({ ...gemini.read(body), stream: false }),
  readAnswer: () => ({ usage: null, textLength: 0 }),
  escalation: () => null,
}

/**
 * `POST /v1/messages/count_tokens`: a request of the messages language that asks only how many tokens its input has.
 * The same policies read its texts. Its answer is `{"input_tokens": 42}`, never a stream.
 */
import type { Dialect } from '../dialect.ts'
import { messages } from './dialect.ts'

export const countTokensPath = '/v1/messages/count_tokens'

export const countTokens: Dialect = {
  ...messages,
  countsTokens: true,
  read: (body) => ({ ...messages.read(body), stream: false }),
  readAnswer: () => ({ usage: null, textLength: 0 }),
  escalation: () => null,
}

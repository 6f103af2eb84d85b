/**
 * The responses language, spoken by applications and by providers (OpenAI's API reference, Responses), as far as it keeps
 * nothing between requests. What it can say is in `responses-features.ts`.
 */
import type { CallerLanguage, ProviderLanguage } from './language.ts'
import { readOpenAiError, writeOpenAiError } from './openai-words.ts'
import { readResponsesAnswer, writeResponsesAnswer } from './responses-answers.ts'
import { readResponsesRequest } from './responses-read-request.ts'
import { ResponsesStreamReader } from './responses-read-stream.ts'
import { writeResponsesRequest } from './responses-write-request.ts'
import { ResponsesStreamWriter } from './responses-write-stream.ts'

export const responses: CallerLanguage & ProviderLanguage = {
  name: 'responses',
  readRequest: readResponsesRequest,
  writeRequest: writeResponsesRequest,
  readAnswer: readResponsesAnswer,
  writeAnswer: writeResponsesAnswer,
  readError: readOpenAiError,
  writeError: writeOpenAiError,
  streamReader: () => new ResponsesStreamReader(),
  streamWriter: (asked) => new ResponsesStreamWriter(asked),
}

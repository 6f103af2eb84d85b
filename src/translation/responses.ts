/**
 * The responses language, spoken by applications and by providers (OpenAI's API reference, Responses), as far as it keeps
 * nothing between requests. What it can say is in `responses-features.ts`.
 */
import type { Language } from './language.ts'
import { readOpenAiError, writeOpenAiError } from './openai-words.ts'
import { readResponsesAnswer, writeResponsesAnswer } from './responses-answers.ts'
import { responsesFeatures, responsesMembers } from './responses-features.ts'
import { readResponsesRequest } from './responses-read-request.ts'
import { ResponsesStreamReader } from './responses-read-stream.ts'
import { writeResponsesRequest } from './responses-write-request.ts'
import { ResponsesStreamWriter } from './responses-write-stream.ts'

export const responses = {
  provider: {
    name: 'responses',
    writeRequest: writeResponsesRequest,
    readAnswer: readResponsesAnswer,
    readError: readOpenAiError,
    streamReader: () => new ResponsesStreamReader(),
  },
  caller: {
    name: 'responses',
    readRequest: readResponsesRequest,
    writeAnswer: writeResponsesAnswer,
    writeError: writeOpenAiError,
    streamWriter: (asked) => new ResponsesStreamWriter(asked),
  },
  features: responsesFeatures,
  members: responsesMembers,
} satisfies Language

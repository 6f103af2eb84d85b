/**
 * The responses language, spoken by applications and by providers (OpenAI's API reference, Responses), as far as it keeps
 * nothing between requests. What it can say is in `features.ts`.
 */

import { readOpenAiError, writeOpenAiError } from '../translation/openai-shared.ts'
import type { Language } from '../translation-language.ts'
import { readResponsesAnswer, writeResponsesAnswer } from './answers.ts'
import { responsesFeatures, responsesMembers } from './features.ts'
import { readResponsesRequest } from './read-request.ts'
import { ResponsesStreamReader } from './read-stream.ts'
import { writeResponsesRequest } from './write-request.ts'
import { ResponsesStreamWriter } from './write-stream.ts'

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

/** Gemini's language, `generateContent` of the API v1beta. No application speaks it to this gateway. */
import { readGeminiError } from './gemini-answers.ts'
import { geminiFeatures } from './gemini-features.ts'
import { GeminiStreamReader, readGeminiAnswer } from './gemini-read-stream.ts'
import { writeGeminiRequest } from './gemini-write-request.ts'
import type { Language } from './language.ts'

export const gemini: Language = {
  provider: {
    name: 'gemini',
    writeRequest: writeGeminiRequest,
    readAnswer: readGeminiAnswer,
    readError: readGeminiError,
    streamReader: () => new GeminiStreamReader(),
  },
  caller: null,
  features: geminiFeatures,
}

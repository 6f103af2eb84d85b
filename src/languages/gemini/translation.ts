/** Gemini's language, `generateContent` of the API v1beta. No application speaks it to this gateway. */

import type { Language } from '../translation-language.ts'
import { readGeminiError } from './answers.ts'
import { geminiFeatures } from './features.ts'
import { GeminiStreamReader, readGeminiAnswer } from './read-stream.ts'
import { writeGeminiRequest } from './write-request.ts'

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

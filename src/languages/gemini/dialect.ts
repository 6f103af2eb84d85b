/**
 * Gemini's language, as applications speak it at `POST /v1beta/models/{model}:generateContent` and
 * `:streamGenerateContent` (Gemini API v1beta): one response, or a series of them, and errors in Google's form. The
 * gateway reads a request in the form of `request-form.ts`.
 */
import { Failure } from '../../failure.ts'
import { type Dialect, estimateTokens } from '../dialect.ts'
import { unforeseenLength } from '../reading/frames/unknown-frames.ts'
import { isGiven, isObject } from '../reading/json-value.ts'
import { fieldReader, modelOf } from '../reading/request-fields.ts'
import { tokenMember } from '../reading/request-only.ts'
import { textReader } from '../reading/texts/request-texts.ts'
import { textLength } from '../reading/texts/texts.ts'
import { topLevelTexts } from '../reading/texts/top-level-texts.ts'
import { readGeminiUsage } from './answers.ts'
import { errorBody, rewrittenError } from './error.ts'
import { geminiMembers } from './members.ts'
import { ownResponse } from './own-response.ts'
import { gatewayForm, wireForm } from './request-form.ts'
import { geminiReader } from './stream-reader.ts'
import {
  addContents,
  addSystem,
  candidateSlots,
  generatedLength,
  reachesBeyondParts,
  unboundedMember,
  waitingCandidate,
} from './texts.ts'

const readFields = fieldReader(geminiMembers)

export const gemini: Dialect = {
  family: 'gemini',
  gatewayForm,
  wireForm,

  read(body) {
    const model = modelOf(body)
    if (!Array.isArray(body.contents)) {
      throw new Failure('invalid_parameter', { param: 'contents', message: 'contents must be a list' })
    }
    return {
      model,
      ...readFields(body),
      inputEstimate: estimateTokens(textLength(body.systemInstruction) + textLength(body.contents)),
      beyondBody: isGiven(body.cachedContent) || reachesBeyondParts([body.systemInstruction, ...body.contents]),
      ...unboundedMember(body),
    }
  },

  requestText: textReader(geminiMembers, { contents: addContents, systemInstruction: addSystem }),
  tokenInput: (body) => tokenMember(body),

  readAnswer: (body) =>
    isObject(body)
      ? {
          usage: readGeminiUsage(body.usageMetadata),
          textLength: Array.isArray(body.candidates) ? generatedLength(body.candidates) : unforeseenLength(body),
        }
      : { usage: null, textLength: 0 },

  answerText: (body) =>
    isObject(body) ? [...candidateSlots(body.candidates), ...topLevelTexts(body, 'candidates')] : [],

  reader: (start) => geminiReader(start),
  errorBody,
  providerError: rewrittenError,
  escalation: ({ model }, verdictan, exchangeId) => ({
    candidates: [waitingCandidate(verdictan)],
    ...ownResponse(model, exchangeId),
    verdictan,
  }),
}

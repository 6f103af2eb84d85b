/** The bodies of Gemini's language in `/v1/openapi.json`. */
import { z } from 'zod'
import type { Described } from './described.ts'

const whole = z.number().int()

const contents = z.array(
  z.looseObject({
    role: z.enum(['user', 'model']).optional(),
    parts: z.array(z.looseObject({ text: z.string().optional() })),
  }),
)
const geminiRequest = z.looseObject({
  contents,
  systemInstruction: z.looseObject({ parts: z.array(z.looseObject({ text: z.string().optional() })) }).optional(),
  tools: z.array(z.looseObject({})).optional(),
  generationConfig: z.looseObject({ maxOutputTokens: whole.positive().optional() }).optional(),
})
const geminiReply = z.looseObject({
  candidates: z
    .array(z.looseObject({ content: z.looseObject({}).optional(), finishReason: z.string().optional() }))
    .optional(),
  usageMetadata: z.looseObject({ promptTokenCount: whole, totalTokenCount: whole }).optional(),
  modelVersion: z.string().optional(),
  responseId: z.string().optional(),
})

export const gemini: Described = {
  summary: "Generates content, in Google's form; the token is sent as x-goog-api-key or as a bearer token",
  request: geminiRequest,
  reply: geminiReply,
  takesApiKey: 'x-goog-api-key',
  errors: 'google',
}

export const geminiStream: Described = {
  ...gemini,
  summary: 'Generates content as server-sent events with alt=sse, and otherwise as a JSON array of responses',
  reply: z.array(geminiReply),
  alsoAnswers: ['text/event-stream'],
}

export const geminiTokenCount: Described = {
  ...gemini,
  summary: "Counts the tokens of a request by the model's own provider; 501 where the provider counts none",
  reply: z.looseObject({ totalTokens: whole }),
}

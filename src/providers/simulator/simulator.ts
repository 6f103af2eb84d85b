/**
 * The simulator: a provider that answers inside the process, offline and always alike, so that a fresh installation can
 * be tried and tested without an account anywhere. It has two models in every family: `echo` gives back the last user
 * message, `lorem` a fixed text as long as the caller's limit allows. Every answer names it, in its id or in
 * `system_fingerprint`; a token is a word. It stands in for no model: it understands nothing of what it is sent.
 */
import { type Family, type ModelFamily, modelFamilies } from '../../languages/families.ts'
import { isGiven, type JsonObject } from '../../languages/reading/json-value.ts'
import type { Fetch, Provider, ProviderKind, UpstreamCall } from '../provider.ts'
import { answerSpeech, answerTranscription } from './audio.ts'
import { answerBatchCall, isBatchCall } from './batches.ts'
import { answerChat, answerCompletion } from './chat.ts'
import { answerGemini, countContents } from './gemini.ts'
import { answerImageEdit, answerImages } from './images.ts'
import { answerMessages, countMessages } from './messages.ts'
import { simulateSession } from './realtime.ts'
import { answerRerank } from './rerank.ts'
import { answerResponses } from './responses.ts'
import { parsedBody, refusal, type SimulatedModel, simulatedModel } from './text.ts'
import { answerEmbeddings, answerModerations } from './vectors.ts'

type Answer = (call: UpstreamCall, body: JsonObject, model: SimulatedModel) => Response

/** All that take JSON. */
const answers: Readonly<
  Record<Exclude<ModelFamily, 'transcriptions' | 'translations' | 'image_edits' | 'realtime'>, Answer>
> = {
  chat: answerChat,
  responses: answerResponses,
  messages: answerMessages,
  gemini: answerGemini,
  embeddings: answerEmbeddings,
  speech: answerSpeech,
  completions: answerCompletion,
  moderations: answerModerations,
  images: answerImages,
  rerank: answerRerank,
}

export const simulator: ProviderKind = {
  kind: 'simulator',
  telemetryName: 'simulator',
  priceName: null,
  environment: null,
  takesCacheKey: true,
  addressProblem: () => null,
  families: modelFamilies,
  countsTokens: true,
  batches: ['chat', 'responses', 'embeddings', 'completions', 'moderations'],
  openSession: (_provider, { model: name }, handlers) => simulateSession(simulatedModel(name) ?? 'echo', handlers),
  async send(provider: Provider, call: UpstreamCall, fetch: Fetch): Promise<Response> {
    if (isBatchCall(call)) return await answerBatchCall(call, (line) => simulator.send(provider, line, fetch))
    const model = simulatedModel(call.model)
    if (model === null) return noSuchModel(call.family)
    if (call.family === 'transcriptions' || call.family === 'translations') return answerTranscription(call, model)
    if (call.family === 'image_edits') return answerImageEdit(call)
    if (call.family === 'mcp' || call.family === 'realtime') return noSuchModel(call.family)
    const body = parsedBody(call)
    if (body === null) return refusal(400, 'invalid_request_body', 'The body is not an object')
    const wrong = wrongInput(call.family, body)
    if (wrong !== null) return refused(call.family, 400, 'invalid_type', wrong)
    if (call.countTokens) return call.family === 'gemini' ? countContents(body) : countMessages(body)
    return answers[call.family](call, body, model)
  },
}

/** Says what is wrong with the input; null if it has the form of its family, or is left out. */
function wrongInput(family: Family, { messages, contents, input, prompt }: JsonObject): string | null {
  if (family === 'chat' || family === 'messages') {
    return isGiven(messages) && !Array.isArray(messages) ? 'messages must be a list' : null
  }
  if (family === 'gemini') return Array.isArray(contents) ? null : 'contents must be a list'
  const [name, given] = family === 'completions' ? ['prompt', prompt] : ['input', input]
  return isGiven(given) && !Array.isArray(given) && typeof given !== 'string'
    ? `${name} must be a string or a list`
    : null
}

const noSuchModel = (family: Family): Response =>
  refused(family, 404, 'model_not_found', 'The simulator has the models echo and lorem')

function refused(family: Family, status: 400 | 404, code: string, message: string): Response {
  if (family === 'gemini') {
    const word = status === 404 ? 'NOT_FOUND' : 'INVALID_ARGUMENT'
    return Response.json({ error: { code: status, message, status: word } }, { status })
  }
  if (family !== 'messages') return refusal(status, code, message)
  const type = status === 404 ? 'not_found_error' : 'invalid_request_error'
  return Response.json({ type: 'error', error: { type, message } }, { status })
}

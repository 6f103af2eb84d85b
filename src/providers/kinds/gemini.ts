/**
 * Google's Gemini API, in its own language: requests of the other text families are translated by the gateway, those
 * for embeddings here. The model and whether to stream stand in the path. The base follows the convention of the
 * official clients, which add the version: one that is only an origin gets `/v1beta`, a trailing slash is ignored.
 */

import { writeEmbeddings } from '../../languages/embeddings/translation.ts'
import { geminiRetryDelay } from '../../languages/gemini/answers.ts'
import { geminiEmbeddings } from '../../languages/gemini/embeddings.ts'
import { objectsOf, parseObject, textOf } from '../../languages/reading/json-value.ts'
import { embed } from '../embeddings.ts'
import { errorBytes, heldBody } from '../held-body.ts'
import { collection, type ModelNames, withoutCollection } from '../model-name.ts'
import type { ProviderKind } from '../provider.ts'
import { addressBook, addressUnder, baseParts, operatorHeaders, post } from '../send-request.ts'
import { countOf, enclosed } from '../token-count.ts'

const defaultBase = 'https://generativelanguage.googleapis.com/v1beta'

const addressOf = addressBook((provider) => ({
  base: geminiBaseOf(provider.baseUrl ?? defaultBase),
  headers: operatorHeaders(provider, provider.apiKey === null ? {} : { 'x-goog-api-key': provider.apiKey }),
}))

export const gemini: ProviderKind = {
  kind: 'gemini',
  telemetryName: 'gcp.gemini',
  priceName: 'google',
  environment: { apiKey: 'GEMINI_API_KEY', baseUrl: null },
  takesCacheKey: false,
  addressProblem: () => null,
  families: ['embeddings', 'gemini'],
  language: 'gemini',
  countsTokens: true,
  address: (provider) => addressOf(provider).base,
  takesName,
  modelNames(name) {
    if (!takesName(name)) return null
    const id = withoutCollection(name)
    if (!id.includes('/')) return namesOf(id.toLowerCase())
    const model = tuned.exec(id)?.[1]
    return model === undefined ? null : { id: tunedCollection + model.toLowerCase(), aliases: [] }
  },
  check(family, body, model) {
    if (family === 'embeddings') writeEmbeddings(body, geminiEmbeddings(modelName(model)))
  },
  offered: {
    request(provider) {
      const { base, headers } = addressOf(provider)
      return { url: `${base}/models?pageSize=1000`, headers }
    },
    read: ({ models }) =>
      objectsOf(models).flatMap(({ name, displayName, supportedGenerationMethods: methods }) =>
        typeof name === 'string' && isAsked(methods) ? { name, displayName: textOf(displayName), createdAt: null } : [],
      ),
  },
  async send(provider, call, fetch) {
    const { base, headers } = addressOf(provider)
    if (call.family === 'embeddings') {
      const url = `${modelAddress(base, call.model)}:batchEmbedContents`
      return await embed(geminiEmbeddings(modelName(call.model)), call, async (body) =>
        withRetryAfter(await post(url, headers, { ...call, body }, fetch)),
      )
    }
    if (call.countTokens) {
      const body = enclosed(call.body, 'generateContentRequest', { model: modelName(call.model) })
      const url = `${modelAddress(base, call.model)}:countTokens`
      const answer = await post(url, headers, { ...call, body }, fetch)
      return await countOf(await withRetryAfter(answer), 'totalTokens')
    }
    const method = call.stream ? 'streamGenerateContent?alt=sse' : 'generateContent'
    return withRetryAfter(await post(`${modelAddress(base, call.model)}:${method}`, headers, call, fetch))
  },
}

/** `https://host` and `https://host/` become `https://host/v1beta`; other paths stay as they are. */
export function geminiBaseOf(url: string): string {
  const { origin, path } = baseParts(url)
  return origin + (path === '' ? '/v1beta' : path)
}

/** `gemini-2.5-pro` is `models/gemini-2.5-pro`; a name with its collection (`tunedModels/…`) stays. */
const modelName = (model: string): string => (model.includes('/') ? model : collection + model)

const modelAddress = (base: string, model: string): string => addressUnder(base, ...modelName(model).split('/'))

/** Whether a model has a method that is called here. */
const isAsked = (methods: unknown): boolean =>
  !Array.isArray(methods) || methods.some((method) => method === 'generateContent' || method === 'embedContent')

/** The one other collection that a caller may name; a record of the catalog may name any. */
const tunedCollection = 'tunedModels/'
const tuned = /^tunedModels\/([^/]+)$/

/** The API takes a name in any case: its lower case is the name that everything here reads, and that is sent. */
const namesOf = (id: string): ModelNames => ({ id, aliases: [`${collection}${id}`] })

/** What follows a colon in the address is the method that is called. */
function takesName(name: string): boolean {
  return !name.includes(':')
}

/** Gemini puts the retry time into the body of an error (google.rpc.RetryInfo), not into a header. */
export async function withRetryAfter(refusal: Response): Promise<Response> {
  if ((refusal.status !== 429 && refusal.status !== 503) || refusal.headers.has('retry-after')) return refusal
  const { text, answer } = await heldBody(refusal, errorBytes)
  const delay = text === null ? null : geminiRetryDelay(parseObject(text))
  if (delay !== null) answer.headers.set('retry-after', String(delay))
  return answer
}

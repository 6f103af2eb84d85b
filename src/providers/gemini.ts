/**
 * Google's Gemini API, in its own language alone: requests of the text families are translated by the gateway, those for
 * embeddings here. The model and whether to stream stand in the path. The base follows the convention of the official
 * clients, which add the version: one that is only an origin gets `/v1beta`, a trailing slash is ignored.
 */
import { parseObject } from '../dialects/json-value.ts'
import { envelope, Failure } from '../failure.ts'
import { geminiRetryDelay, readGeminiError } from '../translation/gemini-answers.ts'
import { readGeminiEmbeddings, writeGeminiEmbeddings } from '../translation/gemini-embeddings.ts'
import { writeOpenAiError } from '../translation/openai-words.ts'
import { type Address, addressBook, baseParts, operatorHeaders, post, withoutLength } from './post.ts'
import type { Fetch, ProviderKind, UpstreamCall } from './provider.ts'

const defaultBase = 'https://generativelanguage.googleapis.com/v1beta'

const addressOf = addressBook((provider) => ({
  base: geminiBaseOf(provider.baseUrl ?? defaultBase),
  headers: operatorHeaders(provider, provider.apiKey === null ? {} : { 'x-goog-api-key': provider.apiKey }),
}))

export const gemini: ProviderKind = {
  kind: 'gemini',
  families: ['embeddings'],
  language: 'gemini',
  address: (provider) => addressOf(provider).base,
  check(family, body) {
    if (family === 'embeddings') writeGeminiEmbeddings(body, '')
  },
  async send(provider, call, fetch) {
    const address = addressOf(provider)
    const { base, headers } = address
    if (call.family === 'embeddings') return embed(address, call, fetch)
    const method = call.stream ? 'streamGenerateContent?alt=sse' : 'generateContent'
    return withRetryAfter(await post(`${base}/${modelPath(call.model)}:${method}`, headers, call, fetch))
  },
}

/** `https://host` and `https://host/` become `https://host/v1beta`; other paths stay as they are. */
export function geminiBaseOf(url: string): string {
  const { origin, path } = baseParts(url)
  return origin + (path === '' ? '/v1beta' : path)
}

/** `gemini-2.5-pro` is `models/gemini-2.5-pro`; a name that says its collection (`tunedModels/…`) stays. */
const modelName = (model: string): string => (model.includes('/') ? model : `models/${model}`)

const modelPath = (model: string): string => modelName(model).split('/').map(encodeURIComponent).join('/')

async function embed({ base, headers }: Address, call: UpstreamCall, fetch: Fetch): Promise<Response> {
  const asked = parseObject(new TextDecoder().decode(call.body)) ?? {}
  const body = writeGeminiEmbeddings(asked, modelName(call.model))
  const sent = { ...call, body: new TextEncoder().encode(JSON.stringify(body)) }
  const url = `${base}/${modelPath(call.model)}:batchEmbedContents`
  const answer = await withRetryAfter(await post(url, headers, sent, fetch))
  const kept = withoutLength(answer.headers)
  kept.set('content-type', 'application/json')
  const said: unknown = parseObject(await answer.text())
  try {
    const json = answer.ok ? readGeminiEmbeddings(said, asked) : writeOpenAiError(readGeminiError(answer.status, said))
    return new Response(JSON.stringify(json), { status: answer.status, headers: kept })
  } catch (thrown) {
    if (!(thrown instanceof Failure)) throw thrown
    const { error } = envelope(thrown, '')
    return Response.json({ error }, { status: thrown.status })
  }
}

/** Gemini says when to try again in the body of an error (google.rpc.RetryInfo), not in a header. */
async function withRetryAfter(answer: Response): Promise<Response> {
  if ((answer.status !== 429 && answer.status !== 503) || answer.headers.has('retry-after')) return answer
  const text = await answer.text()
  const headers = withoutLength(answer.headers)
  const delay = geminiRetryDelay(parseObject(text))
  if (delay !== null) headers.set('retry-after', String(delay))
  return new Response(text, { status: answer.status, headers })
}

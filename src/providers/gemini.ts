/**
 * Google's Gemini API, in its own language alone: requests of the text families are translated. The model and whether to
 * stream stand in the path. The base follows the convention of the official clients, which add the version: one that is
 * only an origin gets `/v1beta`, a trailing slash is ignored.
 */
import { addressBook, baseParts, operatorHeaders, post } from './post.ts'
import type { ProviderKind } from './provider.ts'

const defaultBase = 'https://generativelanguage.googleapis.com/v1beta'

const addressOf = addressBook((provider) => ({
  base: geminiBaseOf(provider.baseUrl ?? defaultBase),
  headers: operatorHeaders(provider, provider.apiKey === null ? {} : { 'x-goog-api-key': provider.apiKey }),
}))

export const gemini: ProviderKind = {
  kind: 'gemini',
  families: [],
  language: 'gemini',
  address: (provider) => addressOf(provider).base,
  send(provider, call, fetch) {
    const { base, headers } = addressOf(provider)
    const method = call.stream ? 'streamGenerateContent?alt=sse' : 'generateContent'
    return post(`${base}/${modelPath(call.model)}:${method}`, headers, call, fetch)
  },
}

/** `https://host` and `https://host/` become `https://host/v1beta`; other paths stay as they are. */
export function geminiBaseOf(url: string): string {
  const { origin, path } = baseParts(url)
  return origin + (path === '' ? '/v1beta' : path)
}

/** `gemini-2.5-pro` is `models/gemini-2.5-pro`; a name that says its collection (`tunedModels/…`) stays. */
const modelPath = (model: string): string =>
  (model.includes('/') ? model : `models/${model}`).split('/').map(encodeURIComponent).join('/')

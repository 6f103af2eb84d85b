/**
 * OpenAI, and everything that speaks its language by another base URL. The base follows the convention of the official
 * clients' `OPENAI_BASE_URL`, which includes `/v1`; a base that is only an origin gets it, a trailing slash is ignored.
 */
import { type Family, isFamily } from '../../languages/families.ts'
import { objectsOf } from '../../languages/reading/json-value.ts'
import { dialSocket, socketAddress } from '../../lib/http/dial-socket.ts'
import { withoutCollection } from '../model-name.ts'
import type { ProviderKind, UpstreamCall } from '../provider.ts'
import { addressBook, baseParts, operatorHeaders, post } from '../send-request.ts'

const defaultBase = 'https://api.openai.com/v1'

/** Where OpenAI serves each family, after the base. */
export const openaiPaths = {
  chat: '/chat/completions',
  responses: '/responses',
  embeddings: '/embeddings',
  transcriptions: '/audio/transcriptions',
  translations: '/audio/translations',
  speech: '/audio/speech',
  completions: '/completions',
  moderations: '/moderations',
  images: '/images/generations',
  image_edits: '/images/edits',
  rerank: '/rerank',
} as const satisfies Partial<Record<Family, string>>

export type OpenaiFamily = keyof typeof openaiPaths

export const isOpenaiFamily = (family: Family): family is OpenaiFamily => Object.hasOwn(openaiPaths, family)

const addressOf = addressBook((provider) => ({
  base: baseOf(provider.baseUrl ?? defaultBase),
  headers: operatorHeaders(provider, provider.apiKey === null ? {} : { authorization: `Bearer ${provider.apiKey}` }),
}))

export const openaiPath = ({ endpoint, family }: UpstreamCall): string =>
  endpoint?.path ?? (isOpenaiFamily(family) ? openaiPaths[family] : '')

export const openai: ProviderKind = {
  kind: 'openai',
  telemetryName: 'openai',
  priceName: 'openai',
  environment: { apiKey: 'OPENAI_API_KEY', baseUrl: 'OPENAI_BASE_URL' },
  takesCacheKey: true,
  addressProblem: () => null,
  families: [...Object.keys(openaiPaths).filter(isFamily).filter(isOpenaiFamily), 'realtime'],
  // Not responses: most servers that imitate OpenAI speak chat, and only few speak responses.
  language: 'chat',
  storesResponses: true,
  batches: ['chat', 'responses', 'embeddings', 'completions', 'moderations'],
  further: { language: 'responses', of: (provider) => addressOf(provider).base === defaultBase },
  address: (provider) => addressOf(provider).base,
  // Google's service in OpenAI's language takes both names.
  modelNames(name) {
    const short = withoutCollection(name)
    return { id: name, aliases: short === name ? [] : [short] }
  },
  offered: {
    request(provider) {
      const { base, headers } = addressOf(provider)
      return { url: `${base}/models`, headers }
    },
    read: ({ data }) =>
      objectsOf(data).flatMap(({ id, created }) =>
        typeof id === 'string'
          ? { name: id, displayName: null, createdAt: typeof created === 'number' ? created * 1000 : null }
          : [],
      ),
  },
  openSession(provider, call, handlers) {
    const { base, headers } = addressOf(provider)
    const url = `${socketAddress(base)}/realtime?model=${encodeURIComponent(call.model)}`
    return dialSocket(url, { ...call.headers, ...headers }, handlers)
  },
  send(provider, call, fetch) {
    const { base, headers } = addressOf(provider)
    return post(base + openaiPath(call), headers, call, fetch)
  },
}

/** `http://host` and `http://host/v1/` both become `http://host/v1`; other paths stay as they are. */
export function baseOf(url: string): string {
  const { origin, path } = baseParts(url)
  return origin + (path === '' ? '/v1' : path)
}

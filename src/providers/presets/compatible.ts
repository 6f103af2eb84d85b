/**
 * Makes a provider kind of a service that speaks OpenAI's language at its own address. What it does not speak itself is
 * translated into chat. A base URL that the operator sets replaces the service's own.
 */
import { objectsOf, parseObject } from '../../languages/reading/json-value.ts'
import { editMembers, jsonMembers } from '../../lib/json/json-members.ts'
import { baseOf, type OpenaiFamily, openai, openaiPath } from '../kinds/openai.ts'
import type { ProviderKind, UpstreamCall } from '../provider.ts'
import { addressBook, operatorHeaders, post } from '../send-request.ts'

export interface CompatibleService {
  /** The kind, and what `--preset` and the prefix of a model's name say. */
  name: string
  /** With its version: calls go to paths directly below it. */
  baseUrl: string
  /** The environment variable with its key: a start registers the service where it is set. */
  apiKey: string
  /** The families that it speaks itself. */
  families: readonly OpenaiFamily[]
  /** Its name in the embedded price table; null where the table does not have it. */
  priceName: string | null
  /** `gen_ai.provider.name` in traces; absent: the kind. */
  telemetryName?: string
  /** It refuses or ignores `max_completion_tokens`: the limit of a chat's output goes into `max_tokens`. */
  limitsByMaxTokens?: true
  storesResponses?: true
  /** Where it lists its models, if not at `/models` below its base; null where it has no list. */
  modelsUrl?: string | null
}

export function compatibleKind(service: CompatibleService): ProviderKind {
  const { name, families, apiKey, priceName, telemetryName = name, modelsUrl } = service
  const addressOf = addressBook((provider) => ({
    base: provider.baseUrl === null ? service.baseUrl : baseOf(provider.baseUrl),
    headers: operatorHeaders(provider, provider.apiKey === null ? {} : { authorization: `Bearer ${provider.apiKey}` }),
  }))
  return {
    kind: name,
    telemetryName,
    priceName,
    environment: { apiKey, baseUrl: `${apiKey.replace(/_API_KEY$/, '')}_BASE_URL` },
    takesCacheKey: false,
    addressProblem: () => null,
    families,
    language: 'chat',
    ...(service.storesResponses && { storesResponses: true }),
    ...(families.includes('responses') && { further: { language: 'responses', of: () => true } }),
    address: (provider) => addressOf(provider).base,
    ...(openai.modelNames && { modelNames: openai.modelNames }),
    ...(modelsUrl !== null && {
      offered: {
        request(provider) {
          const { base, headers } = addressOf(provider)
          return { url: provider.baseUrl === null && modelsUrl ? modelsUrl : `${base}/models`, headers }
        },
        read: ({ data, models }) =>
          objectsOf(data ?? models).flatMap(({ id, name: called, created }) => {
            const model = id ?? called
            if (typeof model !== 'string') return []
            return { name: model, displayName: null, createdAt: typeof created === 'number' ? created * 1000 : null }
          }),
      },
    }),
    send(provider, call, fetch) {
      const { base, headers } = addressOf(provider)
      const sent = service.limitsByMaxTokens && call.family === 'chat' ? withMaxTokens(call) : call
      return post(base + openaiPath(call), headers, sent, fetch)
    },
  }
}

const newLimit = 'max_completion_tokens'
const quotedLimit = Buffer.from(JSON.stringify(newLimit))

/** The call with the limit of its output as `max_tokens`, the lower of both if it has both; other bytes are kept. */
export function withMaxTokens(call: UpstreamCall): UpstreamCall {
  if (Buffer.from(call.body.buffer, call.body.byteOffset, call.body.length).indexOf(quotedLimit) < 0) return call
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(call.body)
  const body = parseObject(text)
  const limit = body?.[newLimit]
  if (body === null || limit === undefined) return call
  const limits = [limit, body.max_tokens].filter((value) => typeof value === 'number')
  const edits = new Map<string, string | null>([[newLimit, null]])
  if (limits.length > 0) edits.set('max_tokens', JSON.stringify(Math.min(...limits)))
  return {
    ...call,
    body: new TextEncoder().encode(editMembers(text, jsonMembers(text, Number.POSITIVE_INFINITY), edits)),
  }
}

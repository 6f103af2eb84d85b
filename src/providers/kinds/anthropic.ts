/**
 * Anthropic, for the messages family in its own language, and for the other text families translated into it. The base
 * follows the convention of the official clients' `ANTHROPIC_BASE_URL`, which is without `/v1`; one that ends in it
 * means the same. The caller's `anthropic-version` and `anthropic-beta` go on; without a version the one that the
 * clients send is.
 */

import { objectsOf, textOf } from '../../languages/reading/json-value.ts'
import type { ProviderKind } from '../provider.ts'
import { addressBook, baseParts, operatorHeaders, post } from '../send-request.ts'

const defaultBase = 'https://api.anthropic.com'
const defaultVersion = '2023-06-01'

const addressOf = addressBook((provider) => ({
  base: messagesBaseOf(provider.baseUrl ?? defaultBase),
  headers: operatorHeaders(provider, provider.apiKey === null ? {} : { 'x-api-key': provider.apiKey }),
}))

export const anthropic: ProviderKind = {
  kind: 'anthropic',
  telemetryName: 'anthropic',
  priceName: 'anthropic',
  environment: { apiKey: 'ANTHROPIC_API_KEY', baseUrl: 'ANTHROPIC_BASE_URL' },
  takesCacheKey: false,
  addressProblem: () => null,
  families: ['messages'],
  language: 'messages',
  countsTokens: true,
  address: (provider) => addressOf(provider).base,
  offered: {
    request(provider) {
      const { base, headers } = addressOf(provider)
      return { url: `${base}/models?limit=1000`, headers: { 'anthropic-version': defaultVersion, ...headers } }
    },
    read: ({ data }) =>
      objectsOf(data).flatMap(({ id, display_name: displayName, created_at: created }) =>
        typeof id === 'string' ? { name: id, displayName: textOf(displayName), createdAt: instantOf(created) } : [],
      ),
  },
  send(provider, call, fetch) {
    const { base, headers } = addressOf(provider)
    const version = call.headers['anthropic-version'] ?? defaultVersion
    const path = call.countTokens ? '/messages/count_tokens' : '/messages'
    return post(base + path, { 'anthropic-version': version, ...headers }, call, fetch)
  },
}

function instantOf(created: unknown): number | null {
  const instant = typeof created === 'string' ? Date.parse(created) : Number.NaN
  return Number.isNaN(instant) ? null : instant
}

/**
 * `https://host`, `https://host/` and `https://host/v1` become `https://host/v1`; `/anthropic` becomes `/anthropic/v1`.
 */
export function messagesBaseOf(url: string): string {
  const { origin, path } = baseParts(url)
  return origin + (path.endsWith('/v1') ? path : `${path}/v1`)
}

/**
 * OpenAI's models at Azure, by the key in `api-key`. Two surfaces, told apart by the base URL (Azure OpenAI REST API):
 *
 * - `https://NAME.openai.azure.com/openai/v1`: as OpenAI itself, the deployment's name as the body's model. An
 *   `api-version` is sent only where the operator sets one.
 * - `https://NAME.openai.azure.com`, with or without `/openai`: the deployment in the path, `api-version` in the query.
 *   The responses family, which has no path by deployment, goes to the first surface of the same resource.
 *
 * The upstream model is the deployment's name. The operator sets the version as the provider's header `api-version`,
 * which becomes the query's; a caller's has no effect.
 */

import { dialSocket, socketAddress } from '../../lib/http/dial-socket.ts'
import type { ProviderKind, UpstreamCall } from '../provider.ts'
import { type Address, addressBook, addressUnder, baseParts, operatorHeaders, post } from '../send-request.ts'
import { openaiPath } from './openai.ts'

/** The last version of the surface by deployments that is generally available. */
const defaultVersion = '2024-10-21'
const versionHeader = 'api-version'
const unifiedPath = '/openai/v1'

interface AzureAddress extends Address {
  /** The base names the surface that is like OpenAI's own. */
  unified: boolean
  version: string | null
}

/** Throws where the provider has no base URL: there is no address that all resources share. */
const addressOf = addressBook((provider): AzureAddress => {
  if (provider.baseUrl === null) throw new TypeError('An azure-openai provider needs a base URL')
  const { origin, path } = baseParts(provider.baseUrl)
  const unified = path.endsWith('/v1')
  const credential: Record<string, string> = provider.apiKey === null ? {} : { 'api-key': provider.apiKey }
  const { [versionHeader]: version, ...headers } = operatorHeaders(provider, credential)
  const base = unified ? origin + path : origin + path.replace(/\/openai$/, '')
  return { base, headers, unified, version: version ?? null }
})

export const azureOpenai: ProviderKind = {
  kind: 'azure-openai',
  telemetryName: 'azure.ai.openai',
  priceName: 'azure',
  environment: { apiKey: 'AZURE_OPENAI_API_KEY', baseUrl: 'AZURE_OPENAI_ENDPOINT' },
  takesCacheKey: true,
  addressProblem: (baseUrl) =>
    baseUrl === null ? "An azure-openai provider needs its resource's address: https://NAME.openai.azure.com" : null,
  families: [
    'chat',
    'responses',
    'embeddings',
    'transcriptions',
    'translations',
    'speech',
    'completions',
    'images',
    'image_edits',
    'realtime',
  ],
  language: 'chat',
  storesResponses: true,
  batches: ['chat', 'responses', 'embeddings', 'completions'],
  // The address does not show which deployments speak it.
  further: { language: 'responses', of: () => false },
  address: ({ baseUrl }) => baseUrl,
  /** The generally available form has one address for both surfaces (Azure OpenAI, Realtime API by WebSockets). */
  openSession(provider, call, handlers) {
    const { base, headers, unified } = addressOf(provider)
    const url = `${socketAddress(unified ? base : base + unifiedPath)}/realtime?model=${encodeURIComponent(call.model)}`
    return dialSocket(url, { ...call.headers, ...headers }, handlers)
  },
  async send(provider, call, fetch) {
    const address = addressOf(provider)
    return await post(azureUrl(address, call), address.headers, call, fetch)
  },
}

function azureUrl({ base, unified, version }: AzureAddress, call: UpstreamCall): string {
  const { family, model } = call
  const path = openaiPath(call)
  const query = (present: string | null) =>
    present === null ? '' : `${path.includes('?') ? '&' : '?'}api-version=${encodeURIComponent(present)}`
  if (unified) return base + path + query(version)
  // What belongs to the resource has no path by deployment either.
  if (family === 'responses' || /^\/(?:files|batches)\b/.test(path)) return base + unifiedPath + path
  return addressUnder(base, 'openai', 'deployments', model) + path + query(version ?? defaultVersion)
}

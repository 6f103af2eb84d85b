/**
 * Vertex AI on Google Cloud: Gemini's models in the language of the Gemini API, and Anthropic's in the messages
 * language, by `rawPredict` (Vertex AI REST API, "Claude on Vertex AI").
 *
 * - The API key is the JSON key of a service account. Without one the host's own account is used, from its metadata
 *   server; then calls go to Google's addresses only, so that nobody who edits the catalog can have the host's tokens
 *   sent elsewhere.
 * - The base URL names the region, `https://REGION-aiplatform.googleapis.com`, and may go on with
 *   `/v1/projects/PROJECT/locations/REGION`. Without one the location is `global`. Where it names no project, the
 *   project is the key's, or the host's.
 *
 * `google/access-tokens.ts` says how long a token is kept and what an outage of the token endpoint does.
 */
import { isObject, parseObject } from '../../languages/reading/json-value.ts'
import { systemClock } from '../../lib/clock.ts'
import { editMembers, jsonMembers } from '../../lib/json/json-members.ts'
import { AccessTokenError, AccessTokens } from '../google/access-tokens.ts'
import { readServiceAccount, type ServiceAccount, secretsOfKey } from '../google/service-account.ts'
import type { ModelNames } from '../model-name.ts'
import type { Fetch, Provider, ProviderKind, UpstreamCall } from '../provider.ts'
import { type Address, addressBook, addressUnder, baseParts, operatorHeaders, post } from '../send-request.ts'
import { countOf, onlyMembersOf } from '../token-count.ts'
import { withRetryAfter } from './gemini.ts'

const anthropicVersion = 'vertex-2023-10-16'
const wholePath = /^\/v1\/projects\/([^/]+)\/locations\/([^/]+)$/
const word = /^[A-Za-z0-9:._-]{1,128}$/

interface VertexAddress extends Address {
  /** Null: the host's own account. */
  account: ServiceAccount | null
  region: string
  /** Null: the host's. */
  project: string | null
}

/** Throws for a key that is none, and where the host's tokens would be sent to another address than Google's. */
const addressOf = addressBook((provider): VertexAddress => {
  const account = provider.apiKey === null ? null : readServiceAccount(provider.apiKey)
  const problem = shared.keyProblem(provider.apiKey, provider.baseUrl)
  if (problem !== null) throw new TypeError(problem)
  const { origin, region, project = account?.project ?? null } = placeOf(provider.baseUrl)
  if (!word.test(region) || (project !== null && !word.test(project))) {
    throw new TypeError('The region or the project of a vertex provider is not valid')
  }
  return { base: origin, headers: operatorHeaders(provider, {}), account, region, project }
})

/** Where a base URL leads; `project` is absent where it names none. */
function placeOf(baseUrl: string | null): { origin: string; region: string; project?: string } {
  if (baseUrl === null) return { origin: 'https://aiplatform.googleapis.com', region: 'global' }
  const { origin, path } = baseParts(baseUrl)
  const { hostname } = new URL(origin)
  const [, region = 'global'] = regionalHost.exec(hostname) ?? multiRegionHost.exec(hostname) ?? []
  const [, project, location] = wholePath.exec(path) ?? []
  return project === undefined ? { origin, region } : { origin, project, region: location ?? region }
}

const regionalHost = /^([a-z0-9-]+)-aiplatform\.googleapis\.com$/
const multiRegionHost = /^aiplatform\.(us|eu)\.rep\.googleapis\.com$/

/** The region of a provider's base URL, or `global`: Anthropic's models cost more in a region. */
export const regionOf = (baseUrl: string | null): string => placeOf(baseUrl).region

const isGoogles = (baseUrl: string): boolean => /(?:^|\.)googleapis\.com$/.test(new URL(baseUrl).hostname)

const shared = {
  kind: 'vertex',
  telemetryName: 'gcp.vertex_ai',
  priceName: 'google',
  environment: null,
  takesCacheKey: false,
  countsTokens: true,
  addressProblem: (baseUrl) =>
    baseUrl === null || ['', '/v1'].includes(baseParts(baseUrl).path) || wholePath.test(baseParts(baseUrl).path)
      ? null
      : 'Write https://REGION-aiplatform.googleapis.com, and after it nothing or /v1/projects/PROJECT/locations/REGION',
  keyProblem(apiKey, baseUrl) {
    if (apiKey === null) {
      return baseUrl === null || isGoogles(baseUrl)
        ? null
        : 'Give the key of a service account: the tokens of the host are sent to Google only'
    }
    try {
      readServiceAccount(apiKey)
      return null
    } catch (thrown) {
      return thrown instanceof TypeError ? thrown.message : 'The key cannot be read'
    }
  },
  secretsIn: secretsOfKey,
  address: ({ baseUrl }) => placeOf(baseUrl).origin,
  takesName: (name) => !name.includes(':'),
  modelNames: namesOf,
} as const satisfies Partial<ProviderKind>

const geminiModels = (ask: Ask): ProviderKind => ({
  ...shared,
  families: ['gemini'],
  language: 'gemini',
  async send(provider, call, fetch) {
    const method = call.stream ? 'streamGenerateContent?alt=sse' : 'generateContent'
    if (!call.countTokens) return withRetryAfter(await ask(provider, call, fetch, ['google', call.model], method))
    const body = encoder.encode(JSON.stringify(onlyMembersOf(call.body, counted)))
    const answer = await ask(provider, { ...call, body }, fetch, ['google', call.model], 'countTokens')
    return await countOf(await withRetryAfter(answer), 'totalTokens')
  },
})

/** The members of a Gemini request that Vertex AI counts. */
const counted = [
  'contents',
  'systemInstruction',
  'system_instruction',
  'tools',
  'generationConfig',
  'generation_config',
]

const anthropicModels = (ask: Ask): ProviderKind => ({
  ...shared,
  families: ['messages'],
  language: 'messages',
  async send(provider, call, fetch) {
    const { 'anthropic-version': _, ...headers } = call.headers
    const model = call.countTokens ? 'count-tokens' : call.model
    const method = call.stream ? 'streamRawPredict' : 'rawPredict'
    const body = withVersion(call)
    return withRetryAfter(await ask(provider, { ...call, headers, body }, fetch, ['anthropic', model], method))
  },
})

const encoder = new TextEncoder()

/** The address names the model; only a count of tokens has it in its body. */
function withVersion({ body, countTokens }: UpstreamCall): Uint8Array {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(body)
  if (!isObject(parseObject(text))) return body
  const edits = new Map<string, string | null>([['anthropic_version', JSON.stringify(anthropicVersion)]])
  if (!countTokens) edits.set('model', null)
  return encoder.encode(editMembers(text, jsonMembers(text, Number.POSITIVE_INFINITY), edits))
}

/** Calls a method of a publisher's model. */
type Ask = (
  provider: Provider,
  call: UpstreamCall,
  fetch: Fetch,
  [publisher, model]: readonly [string, string],
  method: string,
) => Promise<Response>

/** A call with a valid token; once more with a new one if the API refuses a token that it took before. */
const asker =
  (tokens: AccessTokens): Ask =>
  async (provider, call, fetch, [publisher, model], method) => {
    const address = addressOf(provider)
    const { account, base, headers } = address
    const sent = async () => {
      const { text, project } = await tokens.of(account, fetch, call.signal)
      const url = `${modelUrl(base, address, project, publisher, model)}:${method}`
      return { text, answer: await post(url, { ...headers, authorization: `Bearer ${text}` }, call, fetch) }
    }
    const { text, answer } = await sent()
    if (answer.status !== 401 || !tokens.drop(account, text)) return answer
    await answer.body?.cancel()
    return (await sent()).answer
  }

function modelUrl(base: string, address: VertexAddress, hostProject: string | null, publisher: string, model: string) {
  const project = address.project ?? hostProject
  if (project === null || !word.test(project)) {
    throw new AccessTokenError('The project of a vertex provider is not known: write it into its base URL')
  }
  const place = ['v1', 'projects', project, 'locations', address.region, 'publishers', publisher, 'models', model]
  return addressUnder(base, ...place).replaceAll('%40', '@')
}

const isAnthropic = (model: string): boolean => model.replace(resource, '').toLowerCase().startsWith('claude')

/** What the API's own names begin with. */
const resource = /^(?:publishers\/(?:google|anthropic)\/)?models\//

/** `claude-sonnet-4@20250514` is `claude-sonnet-4-20250514` at Anthropic itself: a denial of either holds. */
function namesOf(name: string): ModelNames | null {
  const id = name.replace(resource, '')
  if (id.includes('/') || id.includes(':')) return null
  const [model = id] = id.split('@')
  const aliases = [name, `models/${id}`, id.replace('@', '-'), model]
  return { id, aliases: [...new Set(aliases)].filter((other) => other !== id) }
}

export function vertexWith(tokens: AccessTokens): ProviderKind {
  const ask = asker(tokens)
  const [gemini, anthropic] = [geminiModels(ask), anthropicModels(ask)]
  const forModel = (model: string) => (isAnthropic(model) ? anthropic : gemini)
  return {
    ...shared,
    families: ['gemini', 'messages'],
    language: 'gemini',
    forModel,
    send: (provider, call, fetch) => forModel(call.model).send(provider, call, fetch),
  }
}

export const vertex = vertexWith(new AccessTokens(systemClock))

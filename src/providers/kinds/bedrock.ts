/**
 * Models of many makers at AWS Bedrock, asked by Converse (AWS Bedrock Runtime API), for embeddings by InvokeModel. The
 * upstream model is a model's id, an inference profile's or the ARN of either.
 *
 * - The API key is `ACCESS_KEY_ID:SECRET_ACCESS_KEY`, with `:SESSION_TOKEN` where the credentials are temporary, with
 *   which calls are signed (SigV4), or a Bedrock API key, which is sent as it is.
 * - The region stands in the base URL, `https://bedrock-runtime.REGION.amazonaws.com`, or is the operator's header
 *   `region`, which is sent nowhere; with it alone that address is used. Behind another address both are needed.
 *
 * Streams come as AWS event streams and are handed on as server-sent events (`providers/aws-event-stream.ts`). What
 * AWS is needed for is loaded with the first call: most installations never make one.
 */

import { bedrockEmbeddings } from '../../languages/converse/embeddings.ts'
import { writeEmbeddings } from '../../languages/embeddings/translation.ts'
import { parseObject } from '../../languages/reading/json-value.ts'
import type { AwsCredentials } from '../aws-signature.ts'
import { embed } from '../embeddings.ts'
import { errorBytes, heldBody } from '../held-body.ts'
import type { ModelNames } from '../model-name.ts'
import type { Fetch, Provider, ProviderKind, UpstreamCall } from '../provider.ts'
import { type Address, addressBook, addressUnder, baseParts, operatorHeaders, post } from '../send-request.ts'
import { countOf, onlyMembersOf } from '../token-count.ts'

const regionHeader = 'region'
const hostOfRegion = /^bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\./

interface BedrockAddress extends Address {
  region: string
  /** Null where calls are not signed. */
  credentials: AwsCredentials | null
}

/** Throws where no region is given: each has its own address. */
const addressOf = addressBook((provider): BedrockAddress => {
  const credentials = credentialsOf(provider.apiKey)
  const bearer = credentials === null && provider.apiKey !== null ? { authorization: `Bearer ${provider.apiKey}` } : {}
  const { [regionHeader]: _, ...headers } = operatorHeaders(provider, bearer)
  const region = regionOf(provider.baseUrl, provider.headers)
  if (region === null)
    throw new TypeError('A bedrock provider needs a region: in its base URL, or as the header region')
  return { base: baseOf(provider.baseUrl, region), headers, region, credentials }
})

/** The region in a provider's header `region` or in its address; null if neither has one. */
function regionOf(baseUrl: string | null, headers: Provider['headers']): string | null {
  const given = Object.keys(headers).find((name) => name.toLowerCase() === regionHeader)
  if (given !== undefined) return headers[given] ?? null
  return baseUrl === null ? null : (hostOfRegion.exec(new URL(baseUrl).hostname)?.[1] ?? null)
}

function baseOf(baseUrl: string | null, region: string): string {
  if (baseUrl === null) return `https://bedrock-runtime.${region}.amazonaws.com`
  const { origin, path } = baseParts(baseUrl)
  return origin + path
}

/** Null for a key without parts, which is a Bedrock API key. */
function credentialsOf(apiKey: string | null): AwsCredentials | null {
  const [accessKeyId = '', secretAccessKey, ...rest] = (apiKey ?? '').split(':')
  if (secretAccessKey === undefined) return null
  return { accessKeyId, secretAccessKey, ...(rest.length > 0 && { sessionToken: rest.join(':') }) }
}

export const bedrock: ProviderKind = {
  kind: 'bedrock',
  telemetryName: 'aws.bedrock',
  priceName: 'aws',
  environment: null,
  takesCacheKey: false,
  addressProblem: (baseUrl, headers) =>
    regionOf(baseUrl, headers) === null
      ? 'A bedrock provider needs its region: https://bedrock-runtime.REGION.amazonaws.com'
      : null,
  families: ['embeddings'],
  language: 'converse',
  countsTokens: true,
  address(provider) {
    const region = regionOf(provider.baseUrl, provider.headers)
    return region === null ? null : baseOf(provider.baseUrl, region)
  },
  modelNames: namesOf,
  check(family, body, model) {
    if (family === 'embeddings') writeEmbeddings(body, bedrockEmbeddings(model))
  },
  async send(provider, call, fetch) {
    const address = addressOf(provider)
    if (call.family === 'embeddings') {
      const url = addressUnder(address.base, 'model', call.model, 'invoke')
      return await embed(bedrockEmbeddings(call.model), call, async (body) =>
        readable(await ask(url, address, { ...call, body }, fetch)),
      )
    }
    if (call.countTokens) {
      // CountTokens takes the name of a model, not of an inference profile.
      const url = addressUnder(address.base, 'model', call.model.replace(routing, ''), 'count-tokens')
      const body = encoder.encode(JSON.stringify({ input: { converse: onlyMembersOf(call.body, counted) } }))
      return await countOf(await readable(await ask(url, address, { ...call, body }, fetch)), 'inputTokens')
    }
    const action = call.stream ? 'converse-stream' : 'converse'
    const url = addressUnder(address.base, 'model', call.model, action)
    return readable(await ask(url, address, call, fetch))
  },
}

const encoder = new TextEncoder()

/** The members of a Converse request that CountTokens takes. */
const counted = ['messages', 'system', 'toolConfig', 'additionalModelRequestFields']

const modelArn = /^arn:[^:/]*:bedrock:[^:/]*:[^:/]*:(?:foundation-model|inference-profile)\/([^/]+)$/
const routing = /^(?:global|apac|us-gov|[a-z]{2})\./

/**
 * The ARN of a model, or of AWS's own inference profile, names the model in its last part. Any other ARN (an
 * application's profile, provisioned throughput, a prompt) does not show which model answers, so only a record of the
 * catalog may use one. A profile `eu.MODEL` is MODEL in some regions: allowing one does not allow the other, denying
 * MODEL denies both.
 */
function namesOf(name: string): ModelNames | null {
  const id = modelArn.exec(name)?.[1] ?? name
  if (id.startsWith('arn:')) return null
  const model = id.replace(routing, '')
  return { id, aliases: [model, name].filter((other) => other !== id) }
}

/** The caller's `accept` is for its own language; this one has one form for each action. */
async function ask(url: string, address: BedrockAddress, call: UpstreamCall, fetch: Fetch): Promise<Response> {
  const { accept: _, ...headers } = call.headers
  const sent = { ...call, headers }
  if (address.credentials === null) return await post(url, address.headers, sent, fetch)
  const { signed } = await import('../aws-signature.ts')
  const signature = await signed({ url, body: call.body, contentType: call.contentType, ...address }, new Date())
  return await post(url, { ...address.headers, ...signature }, sent, fetch)
}

/** The answer as the translation reads it: frames as server-sent events, an error with its name in its body. */
async function readable(answer: Response): Promise<Response> {
  const type = answer.headers.get('content-type') ?? ''
  if (answer.ok && type.startsWith('application/vnd.amazon.eventstream')) {
    const { asServerSentEvents } = await import('../aws-event-stream.ts')
    return asServerSentEvents(answer)
  }
  const name = answer.headers.get('x-amzn-errortype')?.split(':')[0]
  return answer.ok || name === undefined ? answer : await namedError(answer, name)
}

/** An error's name is in a header; a body that is not a JSON object, or a very long one, stays unchanged. */
async function namedError(refusal: Response, name: string): Promise<Response> {
  const { text, answer } = await heldBody(refusal, errorBytes)
  const body = text === null ? null : parseObject(text)
  if (body === null) return answer
  const { status, headers } = answer
  return new Response(JSON.stringify({ ...body, __type: name }), { status, headers })
}

/** A route of the gateway as an operation, with the statuses and headers that its pipeline answers with. */
import { z } from 'zod'
import type { GatewayRouteDescription } from './gateway-routes.ts'
import {
  answer,
  answerHeaders,
  contentOf,
  errorMembers,
  failuresOf,
  operationId,
  parametersOf,
  requestBodyOf,
  requestHeaders,
} from './parts.ts'
import type { JsonObject } from './schema.ts'

const modelFailures = [400, 401, 402, 403, 404, 405, 408, 409, 413, 415, 422, 429, 499, 500, 502, 503, 504]

/** Errors in other forms than the envelope, by the names of their schemas. */
export const gatewayErrorSchemas = {
  MessagesError: z
    .object({
      type: z.literal('error'),
      error: z.looseObject({ type: z.string(), ...errorMembers, param: z.string().optional() }),
      request_id: z.string(),
    })
    .describe("An error as Anthropic's clients read it"),
  GoogleError: z
    .object({
      error: z.looseObject({
        code: z.number().int(),
        message: z.string(),
        status: z.string(),
        details: z.array(z.looseObject({})),
      }),
      request_id: z.string(),
    })
    .describe("An error as Google's clients read it; the reason of its ErrorInfo is the code"),
  RpcError: z
    .object({
      jsonrpc: z.literal('2.0'),
      id: z.null().optional(),
      error: z.looseObject({ code: z.number().int(), message: z.string() }),
    })
    .describe('An error of JSON-RPC 2.0'),
} as const

const errorNames = { messages: 'MessagesError', google: 'GoogleError', 'json-rpc': 'RpcError' } as const

const keySchemes = { 'x-api-key': 'apiKey', 'x-goog-api-key': 'googleApiKey' } as const

export function gatewayOperationOf(route: GatewayRouteDescription, schemas: JsonObject): JsonObject {
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  const { permission, family, policyStages, failures = modelFailures, errors } = route
  const verdict = family === undefined ? {} : answerHeaders.verdict
  const session = policyStages.length > 0 || route.errorFrame !== undefined
  return {
    operationId: operationId(route.method, route.path),
    tags: ['Gateway'],
    summary: route.summary,
    'x-permission': permission,
    ...(family === undefined ? {} : { 'x-family': family, 'x-policy-stages': [...policyStages] }),
    ...(permission === null ? { security: [] } : {}),
    ...(route.takesApiKey ? { security: [{ bearer: [] }, { [keySchemes[route.takesApiKey]]: [] }] } : {}),
    parameters: [
      ...names.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
      ...parametersOf('query', route.query, schemas),
      requestHeaders.requestId,
      ...(session ? [requestHeaders.sessionId] : []),
    ],
    ...requestBodyOf(route.request, route.requestType ?? 'application/json', schemas),
    responses: {
      ...successOf(route, schemas, verdict),
      ...failuresOf(failures, errors === undefined ? 'Error' : errorNames[errors], verdict),
    },
  }
}

function successOf(route: GatewayRouteDescription, schemas: JsonObject, verdict: JsonObject): JsonObject {
  const { reply, alsoAnswers = [], otherSuccess = {}, errorFrame } = route
  const others = Object.fromEntries(
    Object.entries(otherSuccess).map(([status, meaning]) => [status, answer(meaning, {}, verdict)]),
  )
  if (errorFrame !== undefined) {
    const upgraded = answer('The connection is a WebSocket; an error is a text frame of this form', {}, verdict)
    return { 101: { ...upgraded, 'x-error-frame': contentOf(errorFrame, [], schemas) }, ...others }
  }
  if (reply === undefined && alsoAnswers.length === 0) return others
  return { 200: answer('OK', contentOf(reply, alsoAnswers, schemas), verdict), ...others }
}

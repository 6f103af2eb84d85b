/** A route of the gateway as an operation, with the statuses and headers that its pipeline answers with. */
import type { GatewayRouteDescription } from './gateway-routes.ts'
import { answer, answerHeaders, contentOf, failuresOf, operationId, requestBodyOf, requestHeaders } from './parts.ts'
import type { JsonObject } from './schema.ts'

const failures = [400, 401, 402, 403, 404, 408, 413, 415, 422, 429, 502, 503, 504]

export function gatewayOperationOf(route: GatewayRouteDescription, schemas: JsonObject): JsonObject {
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  const { reply, alsoAnswers = [] } = route
  return {
    operationId: operationId(route.method, route.path),
    tags: ['Gateway'],
    summary: route.summary,
    'x-permission': route.permission,
    'x-family': route.family,
    'x-policy-stages': [...route.policyStages],
    ...(route.takesApiKey ? { security: [{ bearer: [] }, { apiKey: [] }] } : {}),
    parameters: [
      ...names.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
      requestHeaders.requestId,
      ...(route.policyStages.length > 0 ? [requestHeaders.sessionId] : []),
    ],
    ...requestBodyOf(route.request, route.requestType ?? 'application/json', schemas),
    responses: {
      200: answer('OK', contentOf(reply, alsoAnswers, schemas), answerHeaders.verdict),
      ...failuresOf(failures, 'Error', answerHeaders.verdict),
    },
  }
}

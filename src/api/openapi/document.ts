/**
 * `/v1/openapi.json` (OpenAPI 3.1), made from the zod schemas of the routes: what is sent by their input side, what is
 * answered by their output side. The routes of the gateway stand beside those of the control plane, with servers of
 * their own.
 */
import { version } from '../../version.ts'
import { openApiPath } from '../conventions.ts'
import { gatewayErrorSchemas, gatewayOperationOf } from './gateway-operation.ts'
import type { GatewayRouteDescription } from './gateway-routes.ts'
import { type DescribedRoute, operationOf } from './operation.ts'
import { errorSchema } from './parts.ts'
import { isObject, type JsonObject, schemaOf } from './schema.ts'

export interface DocumentOptions {
  routes: readonly DescribedRoute[]
  gatewayRoutes: readonly GatewayRouteDescription[]
  baseUrl: string
  gatewayUrl: string
}

/** The parts that code looks at; the rest is as OpenAPI defines it. */
export type OpenApiDocument = JsonObject & { paths: { [path: string]: JsonObject } }

/** The whole document as a plain object. Throws where a schema cannot be shown. */
export function openApiDocument({ routes, gatewayRoutes, baseUrl, gatewayUrl }: DocumentOptions): OpenApiDocument {
  const shown = routes.filter(({ method, hooks }) => hooks.internal !== true && method !== 'OPTIONS')
  const schemas: JsonObject = { Error: schemaOf(errorSchema, 'output', {}) }
  if (gatewayRoutes.length > 0) {
    for (const [name, schema] of Object.entries(gatewayErrorSchemas)) schemas[name] = schemaOf(schema, 'output', {})
  }
  const paths: { [path: string]: JsonObject } = {}
  const add = (path: string, method: string, operation: JsonObject) => {
    paths[path] = { ...paths[path], [method.toLowerCase()]: operation }
  }
  for (const route of shown) add(openApiPath(route.path), route.method, operationOf(route, schemas))
  for (const route of gatewayRoutes) {
    const [method, servers] = [route.method.toLowerCase(), [{ url: gatewayUrl }]]
    const ofBoth = paths[route.path]?.[method]
    // What a process answers about itself, both listeners serve.
    if (isObject(ofBoth)) add(route.path, method, { ...ofBoth, servers: [{ url: baseUrl }, ...servers] })
    else add(route.path, method, { ...gatewayOperationOf(route, schemas), servers })
  }
  const tags = new Set([
    ...shown.flatMap(({ hooks }) => hooks.detail?.tags ?? []),
    ...(gatewayRoutes.length > 0 ? ['Gateway'] : []),
  ])
  return {
    openapi: '3.1.0',
    info: {
      title: 'Gatehouse',
      version,
      summary: 'A governing gateway for model traffic',
      description: 'The public API, version 1: the control plane, and the gateway with servers of its own.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: baseUrl }],
    security: [{ bearer: [] }],
    tags: [...tags].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An API token, sent as Authorization: Bearer' },
        apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key', description: "The same, as Anthropic's clients do" },
        googleApiKey: {
          type: 'apiKey',
          in: 'header',
          name: 'x-goog-api-key',
          description: "The same, as Google's clients do",
        },
      },
      schemas,
    },
  }
}

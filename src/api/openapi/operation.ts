/** A route of the control plane as an operation: its schemas, and every status that it can answer with. */
import type { z } from 'zod'
import type { Access } from '../access.ts'
import { openApiPath, type RouteOptions } from '../conventions.ts'
import {
  answer,
  answerHeaders,
  contentOf,
  failuresOf,
  operationId,
  parametersOf,
  requestBodyOf,
  requestHeaders,
} from './parts.ts'
import type { JsonObject } from './schema.ts'

/** What Elysia keeps of a route. */
export interface DescribedRoute {
  method: string
  /** As Elysia writes it: `/v1/tokens/:id`. */
  path: string
  hooks: RouteOptions & {
    params?: z.ZodType
    query?: z.ZodType
    body?: z.ZodType
    response?: z.ZodType | Record<number, z.ZodType>
    detail?: { tags?: string[]; summary?: string }
  }
}

export function operationOf({ method, path, hooks }: DescribedRoute, schemas: JsonObject): JsonObject {
  const { params, query, body, form, bodyType, detail = {} } = hooks
  const open = accessOf(hooks) === 'public'
  return {
    operationId: operationId(method, openApiPath(path)),
    tags: detail.tags ?? [],
    summary: detail.summary ?? '',
    'x-permission': open ? null : accessOf(hooks),
    ...(open ? { security: [] } : {}),
    parameters: [
      ...parametersOf('path', params, schemas),
      ...parametersOf('query', query, schemas),
      requestHeaders.requestId,
      ...(hooks.ifMatch ? [requestHeaders.ifMatch] : []),
      ...(isRepeatable(method, hooks) ? [requestHeaders.idempotencyKey] : []),
    ],
    ...(form === undefined
      ? requestBodyOf(body, bodyType ?? 'application/json', schemas)
      : requestBodyOf(form, 'application/x-www-form-urlencoded', schemas)),
    responses: { ...failuresOf(failureStatuses(method, hooks)), ...declaredAnswers(method, hooks, schemas) },
  }
}

const accessOf = ({ called }: DescribedRoute['hooks']): Access => called?.access ?? 'public'

const isRepeatable = (method: string, hooks: DescribedRoute['hooks']): boolean =>
  method === 'POST' && accessOf(hooks) !== 'public'

/** Every failure that the conventions can answer with on this route, and those that the route adds. */
function failureStatuses(method: string, hooks: DescribedRoute['hooks']): Set<number> {
  const statuses = new Set<number>(hooks.failures)
  const add = (when: boolean, ...found: number[]) => {
    if (when) for (const status of found) statuses.add(status)
  }
  const open = accessOf(hooks) === 'public'
  add(!open, 401, 403, 503)
  add(hooks.params !== undefined, 404)
  add(hooks.query !== undefined, 422)
  add(hooks.body !== undefined, 400, 413, 415, 422)
  add(!open && method !== 'GET', 409)
  add(isRepeatable(method, hooks), 422)
  add(hooks.ifMatch === true, 412)
  return statuses
}

/** The answers that the route has schemas for; those of failures stand in forms of their own. */
function declaredAnswers(method: string, hooks: DescribedRoute['hooks'], schemas: JsonObject): JsonObject {
  const { response, answers = [] } = hooks
  const byStatus: Record<number, z.ZodType | undefined> =
    response === undefined || isSchema(response) ? { 200: response } : response
  const headers = {
    ...(hooks.versioned ? answerHeaders.entityTag : {}),
    ...(isRepeatable(method, hooks) ? answerHeaders.replayed : {}),
  }
  return Object.fromEntries(
    Object.entries(byStatus).map(([status, schema]) =>
      Number(status) < 300
        ? [status, answer('OK', contentOf(schema, answers, schemas), headers)]
        : [status, answer('Refused', contentOf(schema, [], schemas))],
    ),
  )
}

const isSchema = (response: z.ZodType | Record<number, z.ZodType>): response is z.ZodType => '_zod' in response

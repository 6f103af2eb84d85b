/** The routes that describe the API: `/v1/openapi.json`, the documentation page at `/docs`, the handbook. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { handbookPaths, handbookResponse } from '../../handbook/site.ts'
import { jsonResponse } from '../answer.ts'
import { conventions, elysiaPath } from '../conventions.ts'
import { openApiDocument } from './document.ts'
import { documentationPage } from './documentation.ts'
import type { GatewayRouteDescription } from './gateway-routes.ts'
import type { DescribedRoute } from './operation.ts'

export interface DescriptionOptions {
  baseUrl: string
  gatewayUrl: string
  /** Loaded when the description is first asked for. */
  gatewayRoutes(): Promise<readonly GatewayRouteDescription[]>
}

export function descriptionRoutes(
  { baseUrl, gatewayUrl, gatewayRoutes }: DescriptionOptions,
  routes: () => readonly DescribedRoute[],
) {
  // Made at the first request: a start needs none of it.
  let document: string | null = null
  const description = async () =>
    JSON.stringify(openApiDocument({ routes: routes(), gatewayRoutes: await gatewayRoutes(), baseUrl, gatewayUrl }))
  const pages = new Elysia({ name: 'description' }).use(conventions).get(
    '/v1/openapi.json',
    async () => {
      document ??= await description()
      return jsonResponse(200, document)
    },
    {
      access: 'public',
      response: z.looseObject({}),
      detail: { tags: ['Description'], summary: 'This document' },
    },
  )
  for (const { path, respond } of documentationPage()) pages.get(path, respond, { access: 'public', internal: true })
  for (const path of handbookPaths) {
    pages.get(elysiaPath(path), ({ request }) => handbookResponse(request), { access: 'public', internal: true })
  }
  return pages
}

/** `/v1/catalog/cache/clear`: empties what gateways keep of answers, of one model or of all. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { Failure } from '../../failure.ts'
import { insert, newStateVersion, query, statement } from '../../store/query.ts'
import { cacheClears } from '../../store/schema/state/catalog.ts'
import { stateHead } from '../../store/schema/state/head.ts'
import { type CatalogDependencies, changeCatalog } from './catalog-change.ts'
import { canBeAskedFor } from './known-model.ts'

const clearBody = z.strictObject({
  model: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe('The id of the model whose answers go, as callers name it; if left out: those of all models'),
})

const clearedSchema = z.object({
  model: z.string().nullable().describe('null for all models'),
  version: z.number().int().describe('From this version of the state on, no gateway gives an older answer'),
})

export const cacheRoutes = (deps: CatalogDependencies) =>
  new Elysia({ name: 'cache' }).use(conventions).post(
    '/v1/catalog/cache/clear',
    async ({ principal, requestId, body: { model } }) => {
      if (model !== undefined && !(await canBeAskedFor(deps.state, model))) {
        throw new Failure('not_found', { param: 'model', message: `There is no model "${model}"` })
      }
      const row = { version: newStateVersion, deleted: 0 }
      const cleared = insert(cacheClears)
        .values({ id: model ?? '*', ...row })
        .onConflictDoUpdate({ target: cacheClears.id, set: row })
      await changeCatalog(
        deps,
        { principal, requestId },
        {
          type: 'catalog.cache_cleared',
          details: { model_id: model ?? '*' },
          guard: undefined,
          state: [statement(cleared)],
        },
      )
      const [head] = await query(deps.state).select({ version: stateHead.version }).from(stateHead)
      return { model: model ?? null, version: head?.version ?? 0 }
    },
    {
      access: 'catalog:write',
      wholeOrganization: true,
      body: clearBody,
      response: clearedSchema,
      failures: [404],
      detail: {
        tags: ['Catalog'],
        summary: 'Clears the answers that policies of the kind answer-cache keep, on every gateway',
      },
    },
  )

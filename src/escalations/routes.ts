/** `/v1/escalations`: the queue that people decide about (escalations/README.md). */

import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../api/conventions.ts'
import { readCursor, writeCursor } from '../api/cursor.ts'
import { pageQuery } from '../api/page.ts'
import { idParams } from '../api/resource.ts'
import { sinceInstant, sinceSchema } from '../events/query/since.ts'
import { Failure } from '../failure.ts'
import { noteText } from '../identity/free-text.ts'
import type { Principal } from '../identity/principal.ts'
import { applyQueueChanges } from './arrivals.ts'
import type { QueueDependencies } from './change-escalation.ts'
import { claim, resolve, unclaim, undo } from './decide.ts'
import {
  escalationFilters,
  escalationRecord,
  escalationSchema,
  listEscalations,
  type NamedEscalation,
  requireEscalation,
  resolutions,
} from './escalation.ts'

export const escalationRoutes = (deps: QueueDependencies) =>
  new Elysia({ name: 'escalations' })
    .use(conventions)
    .get(
      '/v1/escalations',
      async ({ principal, query: { limit, cursor, status, since } }) => {
        await applyQueueChanges(deps)
        const now = deps.clock.now()
        const filters = { list: 'escalations', status: status ?? null, since: since ?? null }
        const before = cursor === undefined ? null : readCursor(cursor, filters)
        const from = since === undefined ? null : sinceInstant(since, now)
        const found = await listEscalations(
          deps.ledger,
          principal,
          { status, since: from, before, limit: limit + 1 },
          now,
        )
        const page = found.slice(0, limit)
        const last = page.at(-1)
        const next_cursor = found.length > limit && last !== undefined ? writeCursor(last.id, filters) : null
        return { escalations: page.map((row) => escalationRecord(row, now)), next_cursor }
      },
      {
        access: 'escalations:read',
        query: z.strictObject({
          ...pageQuery,
          status: z.enum(escalationFilters).optional().describe('open: queued, claimed or deciding'),
          since: sinceSchema.optional(),
        }),
        response: z.object({ escalations: z.array(escalationSchema), next_cursor: z.string().nullable() }),
        detail: { tags: [tag], summary: 'Lists requests that wait, or waited, for a person, newest first' },
      },
    )
    .get('/v1/escalations/:id', ({ principal, params }) => answer(deps, principal, params.id), {
      access: 'escalations:read',
      params: idParams,
      versioned: true,
      response: escalationSchema,
      detail: { tags: [tag], summary: 'Reads an escalation, by its own id or by the id of any attempt' },
    })
    .post(
      '/v1/escalations/:id/claim',
      async ({ principal, requestId, params: { id } }) => {
        const row = await found(deps, principal, id)
        await claim(deps, { principal, requestId }, row)
        return await answer(deps, principal, row.id)
      },
      {
        access: 'escalations:resolve',
        params: idParams,
        versioned: true,
        response: escalationSchema,
        detail: { tags: [tag], summary: 'Assigns an escalation to the caller, so that others see who handles it' },
      },
    )
    .post(
      '/v1/escalations/:id/unclaim',
      async ({ principal, requestId, params: { id } }) => {
        const row = await found(deps, principal, id)
        await unclaim(deps, { principal, requestId }, row)
        return await answer(deps, principal, row.id)
      },
      {
        access: 'escalations:resolve',
        params: idParams,
        versioned: true,
        response: escalationSchema,
        detail: { tags: [tag], summary: 'Returns an escalation to the queue' },
      },
    )
    .post(
      '/v1/escalations/:id/resolve',
      async ({ principal, requestId, params: { id }, body }) => {
        const { resolution, note = null, grant_once_seconds: grantOnceSeconds = null, undo_seconds: undoSeconds } = body
        if (grantOnceSeconds !== null && resolution !== 'allow') {
          const message = 'Only what is allowed can be sent again'
          throw new Failure('invalid_parameter', { param: 'grant_once_seconds', message })
        }
        const row = await found(deps, principal, id)
        await resolve(deps, { principal, requestId }, row, { resolution, note, grantOnceSeconds, undoSeconds })
        return await answer(deps, principal, row.id)
      },
      {
        access: 'escalations:resolve',
        params: idParams,
        body: z.strictObject({
          resolution: z.enum(resolutions),
          note: noteText(2000).optional().describe('Why, for the record'),
          grant_once_seconds: z
            .number()
            .int()
            .min(1)
            .max(86_400)
            .optional()
            .describe('With allow: how long the same token may send the same request, once'),
          undo_seconds: z
            .number()
            .int()
            .min(0)
            .max(60)
            .default(0)
            .describe('How long the decision can be undone; it takes effect only afterwards'),
        }),
        versioned: true,
        response: escalationSchema,
        detail: { tags: [tag], summary: 'Decides an escalation; sends no request again' },
      },
    )
    .post(
      '/v1/escalations/:id/undo',
      async ({ principal, requestId, params: { id } }) => {
        const row = await found(deps, principal, id)
        await undo(deps, { principal, requestId }, row)
        return await answer(deps, principal, row.id)
      },
      {
        access: 'escalations:resolve',
        params: idParams,
        versioned: true,
        response: escalationSchema,
        detail: { tags: [tag], summary: "Takes back the caller's own decision before it takes effect" },
      },
    )

const tag = 'Escalations'

async function found(deps: QueueDependencies, principal: Principal, id: string): Promise<NamedEscalation> {
  await applyQueueChanges(deps)
  return await requireEscalation(deps.ledger, principal, id)
}

async function answer(deps: QueueDependencies, principal: Principal, id: string) {
  return escalationRecord(await found(deps, principal, id), deps.clock.now())
}

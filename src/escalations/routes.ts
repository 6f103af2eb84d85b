/** `/v1/escalations`: the queue that people decide about (escalations/README.md). */

import { z } from 'zod'
import { readCursor, writeCursor } from '../api/cursor.ts'
import { entityTag } from '../api/entity-tag.ts'
import { pageQuery } from '../api/page.ts'
import { type AnyRoute, type Call, route } from '../api/route.ts'
import { sinceInstant, sinceSchema } from '../events/query/since.ts'
import { Failure } from '../failure.ts'
import { noteText } from '../identity/free-text.ts'
import type { Principal } from '../identity/principal.ts'
import { applyQueueChanges } from './arrivals.ts'
import { claim, type DecisionDependencies, type Reviewer, resolve, unclaim } from './decide.ts'
import {
  escalationRecord,
  escalationSchema,
  escalationStates,
  listEscalations,
  type NamedEscalation,
  requireEscalation,
  resolutions,
} from './escalation.ts'

export const escalationRoutes = (deps: DecisionDependencies): AnyRoute[] => [
  list(deps),
  get(deps),
  act(deps, 'claim', 'Takes an escalation up, so that others see it', claim),
  act(deps, 'unclaim', 'Puts an escalation back into the queue', unclaim),
  decide(deps),
]

const tag = 'Escalations'
const idParams = z.object({ id: z.uuid() })

const list = (deps: DecisionDependencies): AnyRoute =>
  route({
    method: 'GET',
    path: '/v1/escalations',
    tag,
    summary: 'Lists requests that wait, or waited, for a person, the newest first',
    access: 'escalations:read',
    query: z.object({ ...pageQuery, status: z.enum(escalationStates).optional(), since: sinceSchema.optional() }),
    reply: z.object({ escalations: z.array(escalationSchema), next_cursor: z.string().nullable() }),
    async handle({ principal, query: { limit, cursor, status, since } }) {
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
      return { reply: { escalations: page.map((row) => escalationRecord(row, now)), next_cursor } }
    },
  })

const get = (deps: DecisionDependencies): AnyRoute =>
  route({
    method: 'GET',
    path: '/v1/escalations/{id}',
    tag,
    summary: 'One escalation, by its own id or by that of any attempt',
    access: 'escalations:read',
    params: idParams,
    reply: escalationSchema,
    handle: ({ principal, params }) => answer(deps, principal, params.id),
  })

const act = (
  deps: DecisionDependencies,
  name: string,
  summary: string,
  work: (deps: DecisionDependencies, reviewer: Reviewer, row: NamedEscalation) => Promise<void>,
): AnyRoute =>
  route({
    method: 'POST',
    path: `/v1/escalations/{id}/${name}`,
    tag,
    summary,
    access: 'escalations:resolve',
    params: idParams,
    reply: escalationSchema,
    async handle(call) {
      const row = await found(deps, call.principal, call.params.id)
      await work(deps, reviewerOf(call), row)
      return await answer(deps, call.principal, row.id)
    },
  })

const decide = (deps: DecisionDependencies): AnyRoute =>
  route({
    method: 'POST',
    path: '/v1/escalations/{id}/resolve',
    tag,
    summary: 'Decides about an escalation; sends nothing again',
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
    }),
    reply: escalationSchema,
    async handle(call) {
      const { resolution, note = null, grant_once_seconds: grantOnceSeconds = null } = call.body
      if (grantOnceSeconds !== null && resolution !== 'allow') {
        const message = 'Only what is allowed can be sent again'
        throw new Failure('invalid_parameter', { param: 'grant_once_seconds', message })
      }
      const row = await found(deps, call.principal, call.params.id)
      await resolve(deps, reviewerOf(call), row, { resolution, note, grantOnceSeconds })
      return await answer(deps, call.principal, row.id)
    },
  })

const reviewerOf = ({ principal, requestId }: Call<unknown, unknown, unknown>): Reviewer => ({ principal, requestId })

async function found(deps: DecisionDependencies, principal: Principal, id: string): Promise<NamedEscalation> {
  await applyQueueChanges(deps)
  return await requireEscalation(deps.ledger, principal, id)
}

async function answer(deps: DecisionDependencies, principal: Principal, id: string) {
  const reply = escalationRecord(await found(deps, principal, id), deps.clock.now())
  return { reply, headers: { etag: entityTag(reply.version) } }
}

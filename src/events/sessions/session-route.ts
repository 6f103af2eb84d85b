/** Sessions of agents: GET /v1/events/sessions. The turns of one are its events, by `session_id` and `token_id`. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { pageLimit } from '../../api/page.ts'
import type { Principal } from '../../identity/principal.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Database } from '../../store/open.ts'
import { eventFilters } from '../query/filters.ts'
import { requireUntilAfter, sinceInstant, sinceSchema, untilSchema } from '../query/since.ts'
import type { Visibility } from '../visibility.ts'
import { readSessions, sessionSchema } from './read-sessions.ts'

const { session_id, client, token, user, team } = eventFilters

export const sessionRoute = (
  { ledger, clock }: { ledger: Database; clock: Clock },
  visible: (principal: Principal) => Promise<Visibility>,
) =>
  new Elysia({ name: 'agent-sessions' }).use(conventions).get(
    '/v1/events/sessions',
    async ({ principal, query }) => {
      const caller = { principal, visibility: await visible(principal) }
      const since = sinceInstant(query.since, clock.now())
      requireUntilAfter(since, query.until)
      return await readSessions(ledger, query, { since, caller })
    },
    {
      access: 'events:read',
      query: z.strictObject({
        since: sinceSchema.describe('Sessions with a request since then: RFC 3339, or a whole number and m, h, d or w'),
        until: untilSchema.optional().describe('Sessions that began before this instant: RFC 3339'),
        ...{ session_id, client, token, user, team },
        limit: pageLimit,
        cursor: z.string().min(1).max(500).optional(),
      }),
      response: z.object({
        sessions: z.array(sessionSchema.meta({ id: 'AgentSession' })),
        next_cursor: z.string().nullable(),
      }),
      detail: {
        tags: ['Events'],
        summary: 'Lists sessions of agents by their last request, the newest first, from sums that are kept for each',
      },
    },
  )

/** `GET /v1/policies/activity`: what each policy did. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { sinceInstant, sinceSchema, untilSchema } from '../../events/query/since.ts'
import { visibilityFor } from '../../events/query/visibility-filter.ts'
import { timestamp } from '../../lib/clock.ts'
import type { TrialDependencies } from '../trials/trial-routes.ts'
import { activityReply } from './activity-reply.ts'
import { readActivity } from './read-activity.ts'

const query = z.strictObject({
  since: sinceSchema.default('24h'),
  until: untilSchema.optional().describe('RFC 3339, exclusive; now where it is left out'),
  policy_id: z.uuid().optional().describe('Only this policy'),
})

export const activityRoute = ({ ledger, clock }: Pick<TrialDependencies, 'ledger' | 'clock'>) =>
  new Elysia({ name: 'policy activity' }).use(conventions).get(
    '/v1/policies/activity',
    async ({ principal, query: { since: asked, until: end, policy_id }, request: { signal } }) => {
      const now = clock.now()
      const since = sinceInstant(asked, now)
      const until = Math.max(since + 1, end === undefined ? now + 1 : Date.parse(end))
      const visibility = await visibilityFor(ledger, principal)
      const read = await readActivity({ ledger, since, until, visibility, policyId: policy_id ?? null, signal })
      return { since: timestamp(since), until: timestamp(until), ...read }
    },
    {
      access: 'policies:read',
      query,
      response: activityReply,
      detail: { tags: ['Policies'], summary: 'Returns how often each policy was asked, what it said and its time' },
    },
  )

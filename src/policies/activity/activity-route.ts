/** `GET /v1/policies/activity`: what each policy did. */
import { Elysia } from 'elysia'
import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { sinceInstant, sinceSchema, untilSchema } from '../../events/query/since.ts'
import { visibilityFor } from '../../events/query/visibility-filter.ts'
import { type Clock, timestamp } from '../../lib/clock.ts'
import type { TrialDependencies } from '../trials/trial-routes.ts'
import { activityReply } from './activity-reply.ts'
import { readActivity } from './read-activity.ts'

const query = z.strictObject({
  since: sinceSchema.default('24h'),
  until: untilSchema.optional().describe('RFC 3339, exclusive; now where it is left out'),
  policy_id: z.uuid().optional().describe('Only this policy'),
})

type Reply = z.infer<typeof activityReply>

const sharedMilliseconds = 30_000
const mostShared = 100

/** An answer reads up to 20 000 events: callers who see the same share it for a while, also while it is made. */
export function sharedAnswers({
  now,
}: Pick<Clock, 'now'>): (what: unknown, make: () => Promise<Reply>) => Promise<Reply> {
  const kept = new LRUCache<string, Promise<Reply>>({ max: mostShared })
  return (what, make) => {
    const key = JSON.stringify([what, Math.floor(now() / sharedMilliseconds)])
    const known = kept.get(key)
    if (known !== undefined) return known
    const made = make()
    kept.set(key, made)
    made.catch(() => kept.delete(key))
    return made
  }
}

export function activityRoute({ ledger, clock }: Pick<TrialDependencies, 'ledger' | 'clock'>) {
  const shared = sharedAnswers(clock)
  return new Elysia({ name: 'policy activity' }).use(conventions).get(
    '/v1/policies/activity',
    async ({ principal, query: { since: asked, until: end, policy_id: policyId = null } }) => {
      const visibility = await visibilityFor(ledger, principal)
      return await shared([asked, end, policyId, visibility], async () => {
        const now = clock.now()
        const since = sinceInstant(asked, now)
        const until = Math.max(since + 1, end === undefined ? now + 1 : Date.parse(end))
        const { exactSince, ...read } = await readActivity({ ledger, since, until, visibility, policyId })
        return { since: timestamp(since), until: timestamp(until), exact_since: timestamp(exactSince), ...read }
      })
    },
    {
      access: 'policies:read',
      query,
      response: activityReply,
      detail: { tags: ['Policies'], summary: 'Returns how often each policy was asked, what it said and its time' },
    },
  )
}

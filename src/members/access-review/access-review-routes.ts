/** `/v1/access-review`: tokens that nobody uses or whose people have left, and their revocation together. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { pageQuery, recordPage } from '../../api/page.ts'
import { Failure } from '../../failure.ts'
import { propagationSchema } from '../../store/propagation.ts'
import { revokeToken } from '../../tokens/changes/revoke.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { dayMilliseconds, mostAtOnce, reviewRecord, tokensToReview, unusedByDefaultDays } from './access-review.ts'
import { reviewReasons } from './review-reasons.ts'

const reviewSchema = z.object({
  token_id: z.uuid(),
  name: z.string(),
  token_prefix: z.string(),
  reasons: z.array(z.enum(reviewReasons)),
  user_id: z.string().nullable(),
  team_id: z.string().nullable(),
  created_by: z.string().nullable(),
  created_at: z.iso.datetime(),
  last_used_at: z.iso.datetime().nullable(),
  expires_at: z.iso.datetime().nullable(),
})
export type ReviewedToken = z.infer<typeof reviewSchema>

/** Digits and nothing else, because `Number` takes more. */
const days = z
  .preprocess(
    (given) => (typeof given === 'string' && /^[1-9]\d{0,3}$/.test(given) ? Number(given) : given),
    z.number('Write a whole number from 1 to 3650').int().min(1).max(3650),
  )
  .default(unusedByDefaultDays)
  .meta({ type: 'integer', minimum: 1, maximum: 3650 })

const reviewQuery = z.strictObject({
  reason: z.enum(reviewReasons).describe('Only tokens for which this holds').optional(),
  unused_days: days.describe('For how many days nobody has used them'),
  ...pageQuery,
})

export const accessReviewRoutes = (dependencies: MemberDependencies) =>
  new Elysia({ name: 'access-review' })
    .use(conventions)
    .get(
      '/v1/access-review',
      async ({ principal, query: { reason, unused_days, ...page } }) => {
        const { ledger, clock } = dependencies
        const options = {
          ledger,
          principal,
          now: clock.now(),
          unusedMilliseconds: unused_days * dayMilliseconds,
          reason,
        }
        const { records, next_cursor } = await recordPage(page, {
          filters: { list: 'access_review', reason, unused_days: String(unused_days) },
          read: (start, count) => tokensToReview(options, start, count),
          show: (rows) => rows.map(reviewRecord),
        })
        return { tokens: records, next_cursor }
      },
      {
        access: 'tokens:read',
        query: reviewQuery,
        response: z.object({ tokens: z.array(reviewSchema), next_cursor: z.string().nullable() }),
        detail: { tags: ['Tokens'], summary: 'Lists tokens that nobody uses or whose people have left' },
      },
    )
    .post(
      '/v1/access-review/revoke',
      async ({ principal, requestId, body: { token_ids } }) => {
        const actor = { principal, requestId }
        const revoked: { token_id: string; result: 'revoked' | 'not_found' }[] = []
        let propagation: (() => ReturnType<Awaited<ReturnType<typeof revokeToken>>['propagation']>) | null = null
        for (const id of new Set(token_ids)) {
          const done = await revokeToken(dependencies, actor, id).catch(notFoundAsNull)
          revoked.push({ token_id: id, result: done === null ? 'not_found' : 'revoked' })
          if (done !== null) propagation = done.propagation
        }
        // The last one's version includes those before it.
        return { tokens: revoked, propagation: propagation === null ? null : await propagation() }
      },
      {
        access: 'tokens:revoke',
        body: z.strictObject({ token_ids: z.array(z.uuid()).min(1).max(mostAtOnce) }),
        response: z.object({
          tokens: z.array(z.object({ token_id: z.uuid(), result: z.enum(['revoked', 'not_found']) })),
          propagation: propagationSchema.nullable(),
        }),
        detail: { tags: ['Tokens'], summary: 'Revokes tokens together; one that has been revoked stays so' },
      },
    )

function notFoundAsNull(error: unknown): null {
  if (error instanceof Failure && error.code === 'not_found') return null
  throw error
}

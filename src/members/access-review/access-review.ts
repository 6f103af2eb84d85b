/**
 * Which tokens in force somebody should look at: nobody uses them, or their people have left. Runtime tokens of gateways
 * are left out, because revoking one stops its gateway. What has expired, was rotated or revoked needs no review.
 */
import { and, eq, gt, isNull, ne, or, type SQL, sql } from 'drizzle-orm'
import type { Principal } from '../../identity/principal.ts'
import { timestamp } from '../../lib/clock.ts'
import type { Database } from '../../store/open.ts'
import { hasRow, query } from '../../store/query.ts'
import { userIdentities, users } from '../../store/schema/ledger/people.ts'
import { tokens } from '../../store/schema/ledger/tokens.ts'
import { visibleTokens } from '../../tokens/visibility.ts'
import { type ReviewReason, reviewReasons } from './review-reasons.ts'

export interface ReviewOptions {
  ledger: Database
  principal: Principal
  now: number
  /** For how long nobody must have used a token. */
  unusedMilliseconds: number
  /** Only tokens for which this holds. */
  reason: ReviewReason | undefined
}

/** A person has left who is disabled, or for whom no provider vouches any more that ever did. */
function hasLeft(person: SQL): SQL {
  const identity = (condition: SQL | undefined) =>
    hasRow(userIdentities, and(eq(userIdentities.userId, users.id), condition))
  const lost = sql`(${identity(undefined)} and not ${identity(isNull(userIdentities.lostAt))})`
  return hasRow(users, and(person, or(eq(users.status, 'disabled'), lost)))
}

const conditionsOf = (unusedSince: number): Record<ReviewReason, SQL> => ({
  owner_left: sql`(${hasLeft(sql`${users.id} = ${tokens.userId}`)} or (${tokens.ownerKind} = 'user' and ${hasLeft(sql`${users.id} = ${tokens.ownerId}`)}))`,
  creator_left: hasLeft(sql`${tokens.createdBy} = 'user:' || ${users.id}`),
  never_used: sql`(${tokens.lastUsedAt} is null and ${tokens.createdAt} <= ${unusedSince})`,
  unused: sql`(${tokens.lastUsedAt} <= ${unusedSince})`,
})

/** A page of tokens in the order they were made, after the id `start`, each with the reasons that hold for it. */
export function tokensToReview(
  { ledger, principal, now, unusedMilliseconds, reason }: ReviewOptions,
  start: string,
  count: number,
) {
  const conditions = conditionsOf(now - unusedMilliseconds)
  const wanted = reason === undefined ? or(...Object.values(conditions)) : conditions[reason]
  const { id, name, tokenPrefix, userId, teamId, createdBy, createdAt, lastUsedAt, expiresAt } = tokens
  return query(ledger)
    .select({
      ...{ id, name, tokenPrefix, userId, teamId, createdBy, createdAt, lastUsedAt, expiresAt },
      reasons: sql<string>`json_array(${sql.join(
        reviewReasons.map((each) => sql`${conditions[each]}`),
        sql`, `,
      )})`,
    })
    .from(tokens)
    .where(
      and(
        visibleTokens(principal),
        gt(tokens.id, start),
        ne(tokens.purpose, 'gateway_runtime'),
        isNull(tokens.revokedAt),
        or(isNull(tokens.rotatedAt), gt(tokens.rotatedAt, now)),
        or(isNull(tokens.expiresAt), gt(tokens.expiresAt, now)),
        wanted,
      ),
    )
    .orderBy(tokens.id)
    .limit(count)
}

type ReviewRow = Awaited<ReturnType<typeof tokensToReview>>[number]

const instant = (at: number | null): string | null => (at === null ? null : timestamp(at))

export function reviewRecord({ id, reasons, ...row }: ReviewRow) {
  const holds: unknown[] = JSON.parse(reasons)
  return {
    token_id: id,
    name: row.name,
    token_prefix: row.tokenPrefix,
    reasons: reviewReasons.filter((_reason, index) => holds[index] === 1),
    user_id: row.userId,
    team_id: row.teamId,
    created_by: row.createdBy,
    created_at: timestamp(row.createdAt),
    last_used_at: instant(row.lastUsedAt),
    expires_at: instant(row.expiresAt),
  }
}

export const unusedByDefaultDays = 90
export const dayMilliseconds = 86_400_000
/** As many as one call revokes. */
export const mostAtOnce = 100

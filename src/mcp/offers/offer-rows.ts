/** The rows of offers: definitions are in the ledger; which of them is approved is in the state. */

import { and, desc, eq, inArray, ne } from 'drizzle-orm'
import type { Database } from '../../store/open.ts'
import { insert, newStateVersion, query, remove, statement, subquery, update } from '../../store/query.ts'
import { mcpOffers } from '../../store/schema/ledger/policies.ts'
import { mcpApprovals, mcpBaselines } from '../../store/schema/state/catalog.ts'
import type { Statement } from '../../store/statement.ts'
import type { OfferKind } from '../connection.ts'
import { type Definition, offerId } from './definition.ts'

/** The number of unapproved definitions kept for each offer, newest first. */
const heldKept = 5

/** The approved digest of each offer of a server, by `offerId`. */
export async function approvedDigests(state: Database, serverId: string): Promise<ReadonlyMap<string, string>> {
  const { id, digest, deleted } = mcpApprovals
  const rows = await query(state)
    .select({ id, digest })
    .from(mcpApprovals)
    .where(and(eq(mcpApprovals.serverId, serverId), eq(deleted, 0), ne(digest, withdrawn)))
  return new Map(rows.map((row) => [row.id, row.digest]))
}

/** Approves a definition in place of an earlier one; on first use only if there was none. */
export const approve = (
  serverId: string,
  { kind, name, digest }: Pick<Definition, 'kind' | 'name' | 'digest'>,
  where: 'replacing' | 'first',
): Statement => {
  const approved = { digest, version: newStateVersion }
  const made = insert(mcpApprovals).values({ id: offerId(serverId, kind, name), serverId, ...approved })
  return statement(
    where === 'first'
      ? made.onConflictDoNothing()
      : made.onConflictDoUpdate({ target: mcpApprovals.id, set: approved }),
  )
}

/**
 * No definition has this digest. It marks an offer that is known but has no approved definition, so that first use does
 * not approve it again.
 */
const withdrawn = ''

export const withdraw = (
  serverId: string,
  { kind, name, digest }: Pick<Definition, 'kind' | 'name' | 'digest'>,
): Statement => {
  const { id, deleted } = mcpApprovals
  const approved = and(eq(id, offerId(serverId, kind, name)), eq(mcpApprovals.digest, digest), eq(deleted, 0))
  return statement(update(mcpApprovals).set({ digest: withdrawn, version: newStateVersion }).where(approved))
}

/** Who rejected a definition, and when in milliseconds since the epoch. */
type Dismissal = Pick<typeof mcpOffers.$inferSelect, 'dismissedAt' | 'dismissedBy'>

export const notDismissed: Dismissal = { dismissedAt: null, dismissedBy: null }

export const setDismissed = (serverId: string, digest: string, dismissal: Dismissal): Statement =>
  statement(
    update(mcpOffers)
      .set(dismissal)
      .where(and(eq(mcpOffers.serverId, serverId), eq(mcpOffers.digest, digest))),
  )

/** Records since when the offers of a kind are known. */
export const beginBaseline = (serverId: string, kind: OfferKind, now: number): Statement =>
  statement(
    insert(mcpBaselines)
      .values({ id: `${serverId}/${kind}`, serverId, kind, madeAt: now, version: newStateVersion })
      .onConflictDoNothing(),
  )

/** Stores a definition and deletes old unapproved ones of the same offer. */
export function keepOffer(
  serverId: string,
  { kind, name, digest, text }: Definition,
  { gatewayId, now, approved }: { gatewayId: string | null; now: number; approved: string | null },
): Statement[] {
  const values = { serverId, kind, name, digest, definition: text, gatewayId, firstSeenAt: now }
  const own = and(eq(mcpOffers.serverId, serverId), eq(mcpOffers.kind, kind), eq(mcpOffers.name, name))
  const tooMany = subquery
    .select({ id: mcpOffers.id })
    .from(mcpOffers)
    .where(and(own, ne(mcpOffers.digest, approved ?? '')))
    .orderBy(desc(mcpOffers.id))
    .limit(Number.MAX_SAFE_INTEGER)
    .offset(heldKept)
  return [
    statement(insert(mcpOffers).values(values).onConflictDoNothing()),
    statement(remove(mcpOffers).where(inArray(mcpOffers.id, tooMany))),
  ]
}

/** The rows of offers: definitions are in the ledger; which of them is approved is in the state. */

import type { Database } from '../../store/open.ts'
import { insertRow, newStateVersion } from '../../store/rows.ts'
import { mcpOffers } from '../../store/schema/ledger/policies.ts'
import type { Statement } from '../../store/statement.ts'
import type { OfferKind } from '../connection.ts'
import { type Definition, offerId } from './definition.ts'

/** The number of unapproved definitions kept for each offer, newest first. */
const heldKept = 5

/** The approved digest of each offer of a server, by `offerId`. */
export async function approvedDigests(state: Database, serverId: string): Promise<ReadonlyMap<string, string>> {
  const rows = await state.read<{ id: string; digest: string }>(
    'select id, digest from mcp_approvals where server_id = ? and deleted = 0 and digest <> ?',
    [serverId, withdrawn],
  )
  return new Map(rows.map(({ id, digest }) => [id, digest]))
}

/** Approves a definition in place of an earlier one; on first use only if there was none. */
export const approve = (
  serverId: string,
  { kind, name, digest }: Pick<Definition, 'kind' | 'name' | 'digest'>,
  where: 'replacing' | 'first',
): Statement => ({
  sql: `insert into mcp_approvals (id, server_id, digest, version) values (?, ?, ?, ${newStateVersion})
    on conflict (id) do ${where === 'first' ? 'nothing' : 'update set digest = excluded.digest, version = excluded.version'}`,
  args: [offerId(serverId, kind, name), serverId, digest],
})

/**
 * No definition has this digest. It marks an offer that is known but has no approved definition, so that first use does
 * not approve it again.
 */
const withdrawn = ''

export const withdraw = (
  serverId: string,
  { kind, name, digest }: Pick<Definition, 'kind' | 'name' | 'digest'>,
): Statement => ({
  sql: `update mcp_approvals set digest = ?, version = ${newStateVersion} where id = ? and digest = ? and deleted = 0`,
  args: [withdrawn, offerId(serverId, kind, name), digest],
})

/** Records since when the offers of a kind are known. */
export const beginBaseline = (serverId: string, kind: OfferKind, now: number): Statement => ({
  sql: `insert into mcp_baselines (id, server_id, kind, made_at, version) values (?, ?, ?, ?, ${newStateVersion})
    on conflict (id) do nothing`,
  args: [`${serverId}/${kind}`, serverId, kind, now],
})

/** Stores a definition and deletes old unapproved ones of the same offer. */
export function keepOffer(
  serverId: string,
  { kind, name, digest, text }: Definition,
  { gatewayId, now, approved }: { gatewayId: string | null; now: number; approved: string | null },
): Statement[] {
  const values = { serverId, kind, name, digest, definition: text, gatewayId, firstSeenAt: now }
  const inserted = insertRow(mcpOffers, values)
  return [
    { sql: `${inserted.sql} on conflict (server_id, digest) do nothing`, args: inserted.args },
    {
      sql: `delete from mcp_offers where id in (select id from mcp_offers
        where server_id = ? and kind = ? and name = ? and digest <> ? order by id desc limit -1 offset ?)`,
      args: [serverId, kind, name, approved ?? '', heldKept],
    },
  ]
}

/**
 * Which MCP servers offer definitions that wait for a person: of each tool, prompt or resource the definition that was
 * seen last, where it is neither approved nor dismissed. Earlier definitions do not wait, because the server has replaced
 * them.
 */
import { eq, inArray, max } from 'drizzle-orm'
import { z } from 'zod'
import { timestamp } from '../../lib/clock.ts'
import { query, subquery } from '../../store/query.ts'
import { mcpOffers } from '../../store/schema/ledger/policies.ts'
import { mcpApprovals, mcpServers } from '../../store/schema/state/catalog.ts'
import { offerId, offerKinds } from './definition.ts'
import type { OfferDependencies } from './take-offers.ts'

/** The number of names that are shown for each server. */
const namesShown = 5

export const waitingServerSchema = z.object({
  id: z.string(),
  name: z.string(),
  changed: z.number().int().describe('Offers whose new definition differs from the approved one'),
  added: z.number().int().describe('Offers of which no definition is approved'),
  names: z.array(z.string()).describe(`Of these offers, the latest first; at most ${namesShown}`),
  since: z.string().describe('When the first of these definitions was seen'),
})

export const waitingServersReply = z.object({ mcp_servers: z.array(waitingServerSchema) })

export async function waitingServers({
  state,
  ledger,
}: Pick<OfferDependencies, 'state' | 'ledger'>): Promise<z.infer<typeof waitingServersReply>> {
  const servers = await query(state)
    .select({ id: mcpServers.id, name: mcpServers.name })
    .from(mcpServers)
    .where(eq(mcpServers.deleted, 0))
    .orderBy(mcpServers.name)
  const approved = new Map(
    (
      await query(state)
        .select({ id: mcpApprovals.id, digest: mcpApprovals.digest })
        .from(mcpApprovals)
        .where(eq(mcpApprovals.deleted, 0))
    ).map(({ id, digest }) => [id, digest]),
  )
  const { id, serverId, kind, name, digest, dismissedAt, firstSeenAt } = mcpOffers
  const last = subquery
    .select({ id: max(id) })
    .from(mcpOffers)
    .groupBy(serverId, kind, name)
  const seen = await query(ledger)
    .select({ id, serverId, kind, name, digest, dismissedAt, firstSeenAt })
    .from(mcpOffers)
    .where(inArray(id, last))
    .orderBy(id)
  const waiting = seen.flatMap(({ digest: latest, dismissedAt: dismissed, ...offer }) => {
    const before = approved.get(offerId(offer.serverId, z.enum(offerKinds).parse(offer.kind), offer.name)) ?? ''
    return before === latest || dismissed !== null ? [] : [{ ...offer, isChanged: before !== '' }]
  })
  const byServer = Map.groupBy(waiting, (offer) => offer.serverId)
  const mcp_servers = servers.flatMap((server) => {
    const offers = byServer.get(server.id)
    const [first] = offers ?? []
    if (offers === undefined || first === undefined) return []
    const changed = offers.filter(({ isChanged }) => isChanged).length
    const names = offers.toReversed().slice(0, namesShown)
    return [
      {
        ...server,
        ...{ changed, added: offers.length - changed, names: names.map((offer) => offer.name) },
        since: timestamp(first.firstSeenAt),
      },
    ]
  })
  return { mcp_servers }
}

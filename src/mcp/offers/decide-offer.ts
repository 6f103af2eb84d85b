/**
 * What a person decides about one definition of an MCP server. Approved, callers are shown it. Withdrawn, it is held
 * again. Dismissed, it stays held and is announced no longer; the next definition of the same thing is.
 */
import { and, eq } from 'drizzle-orm'
import { z } from 'zod'
import { controlPlaneEvent } from '../../events/control-plane-event.ts'
import type { EventType } from '../../events/event-types.ts'
import { Failure } from '../../failure.ts'
import { parseExactObject } from '../../lib/json/exact-json.ts'
import { type CatalogCall, isThere, missing } from '../../providers/catalog/catalog-change.ts'
import { condition, query } from '../../store/query.ts'
import { mcpOffers } from '../../store/schema/ledger/policies.ts'
import { mcpServers } from '../../store/schema/state/catalog.ts'
import type { Statement } from '../../store/statement.ts'
import { requireServer } from '../catalog/server-routes.ts'
import { offerId, offerNameLimit } from './definition.ts'
import { kindSchema, shownOffer } from './offer-record.ts'
import { approve, approvedDigests, notDismissed, setDismissed, withdraw } from './offer-rows.ts'
import { shapeFault } from './offer-shape.ts'
import type { OfferDependencies } from './take-offers.ts'

/** Which definition is decided about. */
export const namedOffer = z.strictObject({
  kind: kindSchema,
  name: z.string().min(1).max(offerNameLimit),
  digest: z.string().regex(/^[0-9a-f]{64}$/),
})

type Named = z.infer<typeof namedOffer>

/** Throws `invalid_parameter` for a definition that callers could not read. */
export async function approveOffer(deps: OfferDependencies, call: CatalogCall, serverId: string, named: Named) {
  const found = await requireOffer(deps, serverId, named)
  const { kind, digest } = named
  const misfit = shapeFault(kind, parseExactObject(found.row.definition))
  if (misfit !== null)
    throw new Failure('invalid_parameter', { param: 'digest', message: `It cannot be approved: ${misfit}` })
  if (found.approved === digest) return await shownOffer(deps, found.row)
  await changeOffer(deps, call, found, {
    type: 'mcp.offer_approved',
    state: [approve(serverId, named, 'replacing')],
    ledger: [setDismissed(serverId, digest, notDismissed)],
  })
  return await shownOffer(deps, { ...found.row, ...notDismissed })
}

export async function withdrawOffer(deps: OfferDependencies, call: CatalogCall, serverId: string, named: Named) {
  const found = await requireOffer(deps, serverId, named)
  if (found.approved === named.digest) {
    await changeOffer(deps, call, found, {
      type: 'mcp.offer_withdrawn',
      state: [withdraw(serverId, named)],
      ledger: [],
    })
  }
  return await shownOffer(deps, found.row)
}

/** Throws `conflict` for a definition that is approved. */
export async function dismissOffer(deps: OfferDependencies, call: CatalogCall, serverId: string, named: Named) {
  const found = await requireOffer(deps, serverId, named)
  const { row, approved } = found
  if (approved === named.digest)
    throw new Failure('conflict', { param: 'digest', message: 'This definition is approved: withdraw it instead' })
  if (row.dismissedAt !== null) return await shownOffer(deps, row)
  const dismissed = { dismissedAt: deps.clock.now(), dismissedBy: call.principal.name }
  await changeOffer(deps, call, found, {
    type: 'mcp.offer_dismissed',
    state: [],
    ledger: [setDismissed(serverId, named.digest, dismissed)],
  })
  return await shownOffer(deps, { ...row, ...dismissed })
}

/** A definition that was seen, its server, and which definition of the same thing is approved. */
async function requireOffer(deps: OfferDependencies, serverId: string, { kind, name, digest }: Named) {
  const server = await requireServer(deps, serverId)
  const row = await query(deps.ledger)
    .select()
    .from(mcpOffers)
    .where(and(eq(mcpOffers.serverId, serverId), eq(mcpOffers.digest, digest)))
    .get()
  if (row?.kind !== kind || row.name !== name) throw missing('definition of this MCP server')
  const approved = (await approvedDigests(deps.state, serverId)).get(offerId(serverId, kind, name)) ?? null
  return { server, row, approved }
}

interface OfferChange {
  type: Extract<EventType, `mcp.offer_${string}`>
  state: readonly Statement[]
  ledger: readonly Statement[]
}

async function changeOffer(
  { recorder, clock, newId }: OfferDependencies,
  { principal, requestId }: CatalogCall,
  { server, row: { kind, name, digest }, approved }: Awaited<ReturnType<typeof requireOffer>>,
  { type, state, ledger }: OfferChange,
): Promise<void> {
  const offers = [{ name, digest, approved_digest: approved }]
  await recorder.change({
    event: controlPlaneEvent({
      ...{ type, principal, requestId, teamId: null, configVersion: 0, clock, newId },
      details: { mcp_server_id: server.id, server: server.name, kind, offers },
    }),
    guard: condition(isThere(mcpServers, server.id)),
    ...{ state, ledger },
  })
}

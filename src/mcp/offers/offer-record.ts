/** Definitions that an MCP server was seen to offer, as the API shows them. */
import { and, eq, gt } from 'drizzle-orm'
import { z } from 'zod'
import { cutPage, startOf } from '../../api/page.ts'
import { timestamp } from '../../lib/clock.ts'
import { parseExactObject } from '../../lib/json/exact-json.ts'
import { isOneOf, query } from '../../store/query.ts'
import { mcpOffers } from '../../store/schema/ledger/policies.ts'
import { requireServer } from '../catalog/server-routes.ts'
import { offerId, offerKinds } from './definition.ts'
import { differences } from './difference.ts'
import { approvedDigests } from './offer-rows.ts'
import { shapeFault } from './offer-shape.ts'
import type { OfferDependencies } from './take-offers.ts'

export const kindSchema = z.enum(offerKinds)

export const offerSchema = z.object({
  kind: kindSchema,
  name: z.string().describe('Its name, URI or URI template'),
  digest: z.string(),
  status: z.enum(['approved', 'held']).describe('Held: no caller is shown it'),
  approved_digest: z.string().nullable().describe('The definition of this thing that is approved now'),
  misfit: z.string().nullable().describe('Why it cannot be approved: callers could not read it'),
  definition: z.record(z.string(), z.unknown()),
  changes: z
    .array(z.object({ path: z.string(), before: z.string().nullable(), after: z.string().nullable() }))
    .nullable()
    .describe('What differs from the approved definition, as JSON before and after; null where none is approved'),
  gateway_id: z.string().nullable().describe('Where it was first seen'),
  first_seen_at: z.string(),
  dismissed_at: z.string().nullable().describe('Since when it waits for nobody: a person rejected it'),
  dismissed_by: z.string().nullable(),
})

type Databases = Pick<OfferDependencies, 'state' | 'ledger'>

type OfferRow = typeof mcpOffers.$inferSelect

/** A page of what a server was seen to offer, in that order. */
export async function listOffers(
  deps: Databases,
  serverId: string,
  { limit, cursor }: { limit: number; cursor?: string | undefined },
) {
  await requireServer(deps, serverId)
  const filters = { list: 'mcp_offers', server: serverId }
  const start = Number(startOf(cursor, filters, z.string().regex(/^\d{1,15}$/)) ?? 0)
  const found = await query(deps.ledger)
    .select()
    .from(mcpOffers)
    .where(and(eq(mcpOffers.serverId, serverId), gt(mcpOffers.id, start)))
    .orderBy(mcpOffers.id)
    .limit(limit + 1)
  const rows = found.map((row) => ({ ...row, id: String(row.id) }))
  const page = cutPage(rows, limit, filters)
  const approved = await approvedDigests(deps.state, serverId)
  const definitions = await approvedDefinitions(deps, page.rows, approved)
  return { offers: page.rows.map((row) => shown(row, approved, definitions)), next_cursor: page.next_cursor }
}

/** The definitions that are approved of the offers of these rows, by their digests. */
async function approvedDefinitions(
  { ledger }: Pick<Databases, 'ledger'>,
  rows: readonly Omit<OfferRow, 'id'>[],
  approved: ReadonlyMap<string, string>,
): Promise<ReadonlyMap<string, string>> {
  const compared = rows.flatMap((row) => {
    const digest = approvedDigestOf(row, approved)
    return digest === null || digest === row.digest ? [] : [{ digest, serverId: row.serverId }]
  })
  const [first] = compared
  if (first === undefined) return new Map()
  const digests = compared.map(({ digest }) => digest)
  const found = await query(ledger)
    .select({ digest: mcpOffers.digest, definition: mcpOffers.definition })
    .from(mcpOffers)
    .where(and(eq(mcpOffers.serverId, first.serverId), isOneOf(mcpOffers.digest, digests)))
  return new Map(found.map(({ digest, definition }) => [digest, definition]))
}

const approvedDigestOf = (
  { serverId, kind, name }: Omit<OfferRow, 'id'>,
  approved: ReadonlyMap<string, string>,
): string | null => approved.get(offerId(serverId, kindSchema.parse(kind), name)) ?? null

export async function shownOffer(deps: Databases, row: OfferRow) {
  const approved = await approvedDigests(deps.state, row.serverId)
  return shown(row, approved, await approvedDefinitions(deps, [row], approved))
}

function shown(
  row: Omit<OfferRow, 'id'>,
  approved: ReadonlyMap<string, string>,
  definitions: ReadonlyMap<string, string>,
): z.infer<typeof offerSchema> {
  const kind = kindSchema.parse(row.kind)
  const approvedDigest = approvedDigestOf(row, approved)
  const before = approvedDigest === row.digest ? undefined : definitions.get(approvedDigest ?? '')
  const definition = parseExactObject(row.definition) ?? {}
  return {
    kind,
    name: row.name,
    digest: row.digest,
    status: approvedDigest === row.digest ? 'approved' : 'held',
    approved_digest: approvedDigest,
    misfit: shapeFault(kind, definition),
    definition,
    changes: before === undefined ? null : differences(parseExactObject(before), definition),
    gateway_id: row.gatewayId,
    first_seen_at: timestamp(row.firstSeenAt),
    dismissed_at: row.dismissedAt === null ? null : timestamp(row.dismissedAt),
    dismissed_by: row.dismissedBy,
  }
}

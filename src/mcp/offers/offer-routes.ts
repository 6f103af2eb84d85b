/**
 * What MCP servers offer: `/v1/catalog/mcp-servers/{id}/offers` shows each definition with whether it is approved, and
 * approves one; `/v1/catalog/waiting-mcp-offers` says which servers have definitions that wait for a person; gateways
 * report what they see to `/v1/gateway-runtime/mcp-offers`.
 */
import { and, eq, gt } from 'drizzle-orm'
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { cutPage, pageQuery, startOf } from '../../api/page.ts'
import { idParams } from '../../api/resource.ts'
import { controlPlaneEvent } from '../../events/control-plane-event.ts'
import { Failure } from '../../failure.ts'
import { timestamp } from '../../lib/clock.ts'
import { parseExactObject } from '../../lib/json/exact-json.ts'
import { type CatalogCall, isThere, missing } from '../../providers/catalog/catalog-change.ts'
import { condition, isOneOf, query } from '../../store/query.ts'
import { mcpOffers } from '../../store/schema/ledger/policies.ts'
import { mcpServers } from '../../store/schema/state/catalog.ts'
import type { Statement } from '../../store/statement.ts'
import { requireServer } from '../catalog/server-routes.ts'
import { offerId, offerKinds, offerNameLimit } from './definition.ts'
import { differences } from './difference.ts'
import { offerReportReplySchema, offerReportSchema } from './offer-report.ts'
import { approve, approvedDigests, withdraw } from './offer-rows.ts'
import { shapeFault } from './offer-shape.ts'
import { type OfferDependencies, takeOffers } from './take-offers.ts'
import { waitingServers, waitingServersReply } from './waiting-offers.ts'

const path = '/v1/catalog/mcp-servers/:id/offers'
const tag = 'Catalog'

const kindSchema = z.enum(offerKinds)

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
})

const approvalBody = z.strictObject({
  kind: kindSchema,
  name: z.string().min(1).max(offerNameLimit),
  digest: z.string().regex(/^[0-9a-f]{64}$/),
})

export const mcpOfferRoutes = (deps: OfferDependencies) =>
  new Elysia({ name: 'offer' })
    .use(conventions)
    .get(path, ({ params, query }) => listOffers(deps, params.id, query), {
      access: 'catalog:read',
      params: idParams,
      query: z.strictObject(pageQuery),
      response: z.object({ offers: z.array(offerSchema), next_cursor: z.string().nullable() }),
      detail: { tags: [tag], summary: 'Lists the definitions that an MCP server offers, approved or held' },
    })
    .get('/v1/catalog/waiting-mcp-offers', () => waitingServers(deps), {
      access: 'catalog:read',
      response: waitingServersReply,
      detail: { tags: [tag], summary: 'Lists the MCP servers that offer definitions which wait for approval' },
    })
    .post(
      `${path}/approve`,
      ({ principal, requestId, params, body }) => approveOffer(deps, { principal, requestId }, params.id, body),
      {
        access: 'catalog:write',
        params: idParams,
        body: approvalBody,
        response: offerSchema,
        detail: { tags: [tag], summary: 'Approves one definition; it replaces the approved one' },
      },
    )
    .post(
      `${path}/withdraw`,
      ({ principal, requestId, params, body }) => withdrawOffer(deps, { principal, requestId }, params.id, body),
      {
        access: 'catalog:write',
        params: idParams,
        body: approvalBody,
        response: offerSchema,
        detail: {
          tags: [tag],
          summary: 'Withdraws the approval of one definition; it is held again',
        },
      },
    )
    .post(
      '/v1/gateway-runtime/mcp-offers',
      ({ principal, requestId, body }) => takeOffers(deps, { principal, requestId }, body),
      {
        access: 'runtime:session',
        internal: true,
        body: offerReportSchema,
        response: offerReportReplySchema,
        detail: {
          tags: ['Gateway runtime'],
          summary: 'Reports definitions of an MCP server that differ from the approved ones',
        },
      },
    )

type OfferRow = typeof mcpOffers.$inferSelect

async function listOffers(
  deps: OfferDependencies,
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
  { ledger }: Pick<OfferDependencies, 'ledger'>,
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

type Named = z.infer<typeof approvalBody>

async function approveOffer(deps: OfferDependencies, call: CatalogCall, serverId: string, named: Named) {
  const found = await requireOffer(deps, serverId, named)
  const { kind, digest } = named
  const misfit = shapeFault(kind, parseExactObject(found.row.definition))
  if (misfit !== null)
    throw new Failure('invalid_parameter', { param: 'digest', message: `It cannot be approved: ${misfit}` })
  if (found.approved !== digest) {
    await changeOffer(
      deps,
      call,
      { ...found, named, type: 'mcp.offer_approved' },
      approve(serverId, named, 'replacing'),
    )
  }
  return await shownOffer(deps, found.row)
}

async function withdrawOffer(deps: OfferDependencies, call: CatalogCall, serverId: string, named: Named) {
  const found = await requireOffer(deps, serverId, named)
  if (found.approved === named.digest) {
    await changeOffer(deps, call, { ...found, named, type: 'mcp.offer_withdrawn' }, withdraw(serverId, named))
  }
  return await shownOffer(deps, found.row)
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

interface OfferChange extends Awaited<ReturnType<typeof requireOffer>> {
  named: Named
  type: 'mcp.offer_approved' | 'mcp.offer_withdrawn'
}

async function changeOffer(
  { recorder, clock, newId }: OfferDependencies,
  { principal, requestId }: CatalogCall,
  { server, named: { kind, name, digest }, approved, type }: OfferChange,
  statement: Statement,
): Promise<void> {
  const offers = [{ name, digest, approved_digest: approved }]
  await recorder.change({
    event: controlPlaneEvent({
      ...{ type, principal, requestId, teamId: null, configVersion: 0, clock, newId },
      details: { mcp_server_id: server.id, server: server.name, kind, offers },
    }),
    guard: condition(isThere(mcpServers, server.id)),
    state: [statement],
    ledger: [],
  })
}

async function shownOffer(deps: OfferDependencies, row: OfferRow) {
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
  }
}

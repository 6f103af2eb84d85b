/**
 * What MCP servers offer: `/v1/catalog/mcp-servers/{id}/offers` shows each definition with whether it is approved;
 * below it a person approves, withdraws or dismisses one. `/v1/catalog/waiting-mcp-offers` says which servers have
 * definitions that wait for a person. Gateways report what they see to `/v1/gateway-runtime/mcp-offers`.
 */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { pageQuery } from '../../api/page.ts'
import { idParams } from '../../api/resource.ts'
import { approveOffer, dismissOffer, namedOffer, withdrawOffer } from './decide-offer.ts'
import { listOffers, offerSchema } from './offer-record.ts'
import { offerReportReplySchema, offerReportSchema } from './offer-report.ts'
import { type OfferDependencies, takeOffers } from './take-offers.ts'
import { waitingServers, waitingServersReply } from './waiting-offers.ts'

const path = '/v1/catalog/mcp-servers/:id/offers'
const tag = 'Catalog'

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
        body: namedOffer,
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
        body: namedOffer,
        response: offerSchema,
        detail: {
          tags: [tag],
          summary: 'Withdraws the approval of one definition; it is held again',
        },
      },
    )
    .post(
      `${path}/dismiss`,
      ({ principal, requestId, params, body }) => dismissOffer(deps, { principal, requestId }, params.id, body),
      {
        access: 'catalog:write',
        params: idParams,
        body: namedOffer,
        response: offerSchema,
        detail: {
          tags: [tag],
          summary: 'Dismisses one held definition: it stays held, and is announced no longer',
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

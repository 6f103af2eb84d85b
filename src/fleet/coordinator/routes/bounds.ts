/**
 * `/v1/gateways/{id}/bounds`: how many instances a gateway may have, and from which addresses (fleet/README.md,
 * Trust).
 */
import { and, eq } from 'drizzle-orm'
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../../api/conventions.ts'
import { controlPlaneEvent } from '../../../events/control-plane-event.ts'
import { Failure } from '../../../failure.ts'
import { insert, query, statement } from '../../../store/query.ts'
import { gatewayBounds } from '../../../store/schema/ledger/fleet.ts'
import { gateways } from '../../../store/schema/state/catalog.ts'
import { parseRange, readBounds } from '../enrolment.ts'
import type { FleetOptions } from '../options.ts'

const path = '/v1/gateways/:id/bounds'
const tag = 'Gateways'

const range = z
  .string()
  .max(64)
  .refine((text) => parseRange(text) !== null, 'Write an address or a range: 10.0.0.0/8, 2001:db8::/32')

const boundsSchema = z.strictObject({
  max_instances: z
    .number()
    .int()
    .min(1)
    .max(1_000_000)
    .nullable()
    .describe('Instances that may have a session at once; null: any number'),
  addresses: z
    .array(range)
    .min(1)
    .max(100)
    .nullable()
    .describe('Ranges that instances may start from, as the control plane sees their addresses; null: any'),
})

type Options = Pick<FleetOptions, 'state' | 'ledger' | 'recorder' | 'clock' | 'newId'>

export const boundsRoutes = (options: Options) =>
  new Elysia({ name: 'bounds' })
    .use(conventions)
    .get(
      path,
      async ({ params: { id } }) => {
        await requireGateway(options, id)
        return await readBounds(options, id)
      },
      {
        access: 'catalog:read',
        params: z.object({ id: z.uuid() }),
        response: boundsSchema,
        detail: { tags: [tag], summary: 'How many instances a gateway may have, and from where' },
      },
    )
    .put(
      path,
      async ({ principal, requestId, params: { id }, body }) => {
        await requireGateway(options, id)
        const addresses = body.addresses === null ? null : JSON.stringify(body.addresses)
        const bounds = { maxInstances: body.max_instances, addresses }
        await options.recorder().change({
          event: controlPlaneEvent({
            type: 'catalog.updated',
            principal,
            requestId,
            teamId: null,
            details: { gateway_id: id, ...body },
            configVersion: 0,
            clock: options.clock,
            newId: options.newId,
          }),
          state: [],
          ledger: [
            statement(
              insert(gatewayBounds)
                .values({ gatewayId: id, ...bounds })
                .onConflictDoUpdate({ target: gatewayBounds.gatewayId, set: bounds }),
            ),
          ],
        })
        return body
      },
      {
        access: 'catalog:write',
        params: z.object({ id: z.uuid() }),
        body: boundsSchema,
        response: boundsSchema,
        detail: {
          tags: [tag],
          summary: 'Sets how many instances a gateway may have, and from where; it is looked at when one starts',
        },
      },
    )

async function requireGateway({ state }: Options, id: string): Promise<void> {
  const found = await query(state).$count(gateways, and(eq(gateways.id, id), eq(gateways.deleted, 0)))
  if (found === 0) throw new Failure('not_found', { message: 'There is no such gateway' })
}

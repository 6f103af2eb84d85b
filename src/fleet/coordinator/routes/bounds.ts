/**
 * `/v1/gateways/{id}/bounds`: how many instances a gateway may have, and from which addresses (fleet/README.md,
 * Trust).
 */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../../api/conventions.ts'
import { controlPlaneEvent } from '../../../events/control-plane-event.ts'
import { Failure } from '../../../failure.ts'
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
            {
              sql: 'insert or replace into gateway_bounds (gateway_id, max_instances, addresses) values (?, ?, ?)',
              args: [id, body.max_instances, body.addresses === null ? null : JSON.stringify(body.addresses)],
            },
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
  const found = await state.read('select 1 from gateways where id = ? and deleted = 0', [id])
  if (found.length === 0) throw new Failure('not_found', { message: 'There is no such gateway' })
}

/** A lane asks for shares of limits and gives some back (protocols section 2; usage/lease.ts). */
import { type AnyRoute, route } from '../api/route.ts'
import { heldLane } from './beat-route.ts'
import type { LaneRegistry } from './lane-registry.ts'
import type { UsageControl } from './usage.ts'
import { leasesReplySchema, leasesRequestSchema } from './wire.ts'

export interface LeasesDependencies {
  registry: LaneRegistry
  usage: Pick<UsageControl, 'authority'>
}

export const leasesRoute = ({ registry, usage }: LeasesDependencies): AnyRoute =>
  route({
    method: 'POST',
    path: '/v1/gateway-runtime/leases',
    tag: 'Gateway runtime',
    summary: 'Ask for shares of limits and give back what is not needed',
    access: 'runtime:session',
    body: leasesRequestSchema,
    reply: leasesReplySchema,
    internal: true,
    async handle({ principal, body: { lane: worker, stream_id: streamId, ...request }, signal }) {
      const { lane, gatewayId } = await heldLane(registry, principal, worker, streamId)
      return { reply: await usage.authority.receive({ lane, streamId, gatewayId, signal }, request) }
    },
  })

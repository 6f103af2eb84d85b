/**
 * Lease messages: a worker asks for shares of limits and returns some (usage/lease/README.md; usage/lease/lease.ts).
 */
import { type AnyRoute, route } from '../../../api/route.ts'
import { leasesReplySchema, leasesRequestSchema } from '../../protocol/wire.ts'
import type { UsageControl } from '../usage.ts'
import type { WorkerRegistry } from '../worker-registry.ts'
import { connectedWorker } from './heartbeat.ts'

export interface LeasesDependencies {
  registry: WorkerRegistry
  usage: Pick<UsageControl, 'allocator'>
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
    async handle({ principal, body: { worker: workerNumber, stream_id: streamId, ...request }, signal }) {
      const { worker, gatewayId } = await connectedWorker(registry, principal, workerNumber, streamId)
      return { reply: await usage.allocator.receive({ worker, streamId, gatewayId, signal }, request) }
    },
  })

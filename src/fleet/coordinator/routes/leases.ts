/**
 * Lease messages: a worker asks for shares of limits and returns some (usage/lease/README.md; usage/lease/lease.ts).
 */
import { Elysia } from 'elysia'
import { conventions } from '../../../api/conventions.ts'
import { leasesReplySchema, leasesRequestSchema } from '../../protocol/wire.ts'
import type { UsageControl } from '../usage.ts'
import type { WorkerRegistry } from '../worker-registry.ts'
import { connectedWorker } from './heartbeat.ts'

export interface LeasesDependencies {
  registry: WorkerRegistry
  usage: Pick<UsageControl, 'allocator' | 'epoch'>
}

export const leasesRoute = ({ registry, usage }: LeasesDependencies) =>
  new Elysia({ name: 'runtime leases' }).use(conventions).post(
    '/v1/gateway-runtime/leases',
    async ({ principal, body: { worker: workerNumber, stream_id: streamId, ...request }, request: { signal } }) => {
      const { worker, gatewayId } = await connectedWorker(registry, principal, workerNumber, streamId)
      const reply = await usage.allocator.receive({ worker, streamId, gatewayId, signal }, request)
      return reply.grants.length === 0 ? reply : { ...reply, ledger_epoch: await usage.epoch() }
    },
    {
      access: 'runtime:session',
      internal: true,
      body: leasesRequestSchema,
      response: leasesReplySchema,
      detail: { tags: ['Gateway runtime'], summary: 'Ask for shares of limits and give back what is not needed' },
    },
  )

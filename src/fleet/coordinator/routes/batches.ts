/** Batches: which ones a worker follows, and what those that ended have cost (usage/batches/README.md). */
import { Elysia } from 'elysia'
import { conventions } from '../../../api/conventions.ts'
import { batchesReplySchema, batchesRequestSchema } from '../../../usage/batches/batch-protocol.ts'
import type { UsageControl } from '../usage.ts'
import type { WorkerRegistry } from '../worker-registry.ts'
import { connectedWorker } from './heartbeat.ts'

export interface BatchesDependencies {
  registry: WorkerRegistry
  usage: Pick<UsageControl, 'batches'>
}

export const batchesRoute = ({ registry, usage }: BatchesDependencies) =>
  new Elysia({ name: 'runtime batches' }).use(conventions).post(
    '/v1/gateway-runtime/batches',
    async ({ principal, body: { worker: workerNumber, stream_id: streamId, settled } }) => {
      const { worker, gatewayId } = await connectedWorker(registry, principal, workerNumber, streamId)
      return await usage.batches.sync(worker, gatewayId, settled)
    },
    {
      access: 'runtime:session',
      internal: true,
      body: batchesRequestSchema,
      response: batchesReplySchema,
      detail: { tags: ['Gateway runtime'], summary: 'Settle batches that ended, and ask which ones to follow' },
    },
  )

/** Batches: which ones a worker follows, and what those that ended have cost (usage/batches/README.md). */
import { Elysia } from 'elysia'
import { conventions } from '../../../api/conventions.ts'
import type { Database } from '../../../store/open.ts'
import {
  batchesReplySchema,
  batchesRequestSchema,
  objectsReplySchema,
  objectsRequestSchema,
} from '../../../usage/batches/batch-protocol.ts'
import { listMadeObjects } from '../../../usage/batches/made-objects.ts'
import type { UsageControl } from '../usage.ts'
import type { WorkerRegistry } from '../worker-registry.ts'
import { connectedWorker } from './heartbeat.ts'

export interface BatchesDependencies {
  registry: WorkerRegistry
  usage: Pick<UsageControl, 'batches'>
  ledger: Database
}

export const batchesRoute = ({ registry, usage, ledger }: BatchesDependencies) =>
  new Elysia({ name: 'runtime batches' })
    .use(conventions)
    .post(
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
    .post(
      '/v1/gateway-runtime/batch-objects',
      async ({ principal, body: { worker, stream_id: streamId, ...query } }) => {
        await connectedWorker(registry, principal, worker, streamId)
        return await listMadeObjects(ledger, query)
      },
      {
        access: 'runtime:session',
        internal: true,
        body: objectsRequestSchema,
        response: objectsReplySchema,
        detail: { tags: ['Gateway runtime'], summary: 'Ask which files and batches an owner has made' },
      },
    )

/** Deregisters a worker that has drained and shipped everything: nothing waits for its acknowledgements any more. */
import { Elysia } from 'elysia'
import { conventions } from '../../../api/conventions.ts'
import { timestamp } from '../../../lib/clock.ts'
import { deregisterReplySchema, deregisterRequestSchema } from '../../protocol/wire.ts'
import type { FleetOptions } from '../options.ts'
import type { WorkerRegistry } from '../worker-registry.ts'
import { connectedWorker } from './heartbeat.ts'

export const deregisterRoute = ({ options, registry }: { options: FleetOptions; registry: WorkerRegistry }) =>
  new Elysia({ name: 'runtime deregister' }).use(conventions).post(
    '/v1/gateway-runtime/deregister',
    async ({ principal, body }) => {
      await registry.deregister(await connectedWorker(registry, principal, body.worker, body.stream_id))
      return { now: timestamp(options.clock.now()) }
    },
    {
      access: 'runtime:session',
      internal: true,
      body: deregisterRequestSchema,
      response: deregisterReplySchema,
      detail: { tags: ['Gateway runtime'], summary: 'Say that a worker serves no more' },
    },
  )

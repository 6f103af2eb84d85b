/** Deregisters a worker that has drained and shipped everything: nothing waits for its acknowledgements any more. */
import { type AnyRoute, route } from '../../../api/route.ts'
import { timestamp } from '../../../lib/clock.ts'
import { deregisterReplySchema, deregisterRequestSchema } from '../../protocol/wire.ts'
import type { FleetOptions } from '../options.ts'
import type { WorkerRegistry } from '../worker-registry.ts'
import { connectedWorker } from './heartbeat.ts'

export const deregisterRoute = ({ options, registry }: { options: FleetOptions; registry: WorkerRegistry }): AnyRoute =>
  route({
    method: 'POST',
    path: '/v1/gateway-runtime/deregister',
    tag: 'Gateway runtime',
    summary: 'Say that a worker serves no more',
    access: 'runtime:session',
    body: deregisterRequestSchema,
    reply: deregisterReplySchema,
    internal: true,
    async handle({ principal, body }) {
      await registry.deregister(await connectedWorker(registry, principal, body.worker, body.stream_id))
      return { reply: { now: timestamp(options.clock.now()) } }
    },
  })

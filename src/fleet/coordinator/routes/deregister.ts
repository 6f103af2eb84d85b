/** A worker that has drained and told all says so: nobody waits for its acknowledgements any more. */
import { type AnyRoute, route } from '../../../api/route.ts'
import { timestamp } from '../../../lib/clock.ts'
import { goodbyeReplySchema, goodbyeRequestSchema } from '../../protocol/wire.ts'
import type { FleetOptions } from '../options.ts'
import type { WorkerRegistry } from '../worker-registry.ts'
import { heldWorker } from './heartbeat.ts'

export const goodbyeRoute = ({ options, registry }: { options: FleetOptions; registry: WorkerRegistry }): AnyRoute =>
  route({
    method: 'POST',
    path: '/v1/gateway-runtime/goodbye',
    tag: 'Gateway runtime',
    summary: 'Say that a worker serves no more',
    access: 'runtime:session',
    body: goodbyeRequestSchema,
    reply: goodbyeReplySchema,
    internal: true,
    async handle({ principal, body }) {
      await registry.leave(await heldWorker(registry, principal, body.worker, body.stream_id))
      return { reply: { now: timestamp(options.clock.now()) } }
    },
  })

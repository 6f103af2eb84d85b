/** A worker that has drained and told all says so: nobody waits for its acknowledgements any more. */
import { Elysia } from 'elysia'
import { conventions } from '../../../api/conventions.ts'
import { timestamp } from '../../../lib/clock.ts'
import { goodbyeReplySchema, goodbyeRequestSchema } from '../../protocol/wire.ts'
import type { FleetOptions } from '../options.ts'
import type { WorkerRegistry } from '../worker-registry.ts'
import { heldWorker } from './heartbeat.ts'

export const goodbyeRoute = ({ options, registry }: { options: FleetOptions; registry: WorkerRegistry }) =>
  new Elysia({ name: 'runtime goodbye' }).use(conventions).post(
    '/v1/gateway-runtime/goodbye',
    async ({ principal, body }) => {
      await registry.leave(await heldWorker(registry, principal, body.worker, body.stream_id))
      return { now: timestamp(options.clock.now()) }
    },
    {
      access: 'runtime:session',
      internal: true,
      body: goodbyeRequestSchema,
      response: goodbyeReplySchema,
      detail: { tags: ['Gateway runtime'], summary: 'Say that a worker serves no more' },
    },
  )

/** Takes in what a worker has denied, where the primary does not know the history that the worker has followed. */
import { Elysia } from 'elysia'
import { conventions } from '../../../api/conventions.ts'
import { denialsReplySchema, denialsRequestSchema } from '../../protocol/wire.ts'
import type { StateHead } from '../../state/state-head.ts'
import type { FleetOptions } from '../options.ts'
import { revokeByDenials } from '../tokens-to-revoke-again.ts'
import type { WorkerRegistry } from '../worker-registry.ts'
import { heldWorker } from './heartbeat.ts'

export interface DenialsDependencies {
  options: FleetOptions
  registry: WorkerRegistry
  stateHead: StateHead
}

export const denialsRoute = ({ options, registry, stateHead }: DenialsDependencies) =>
  new Elysia({ name: 'runtime denials' }).use(conventions).post(
    '/v1/gateway-runtime/denials',
    async ({ principal, body }) => {
      const { worker } = await heldWorker(registry, principal, body.worker, body.stream_id)
      const revoked = await revokeByDenials(options, worker, body.denials)
      if (revoked > 0) {
        options.log.warn({ worker, revoked }, 'The restored state had tokens that a gateway knows to be revoked')
      }
      return { head: await stateHead.read(), revoked }
    },
    {
      access: 'runtime:session',
      internal: true,
      body: denialsRequestSchema,
      response: denialsReplySchema,
      detail: {
        tags: ['Gateway runtime'],
        summary: 'Tell what a worker has denied in a history that the primary has lost',
      },
    },
  )

/** Applies the revocations of a worker whose history the primary does not know. */
import { Elysia } from 'elysia'
import { conventions } from '../../../api/conventions.ts'
import { revocationsReplySchema, revocationsRequestSchema } from '../../protocol/wire.ts'
import type { StateHead } from '../../state/state-head.ts'
import type { FleetOptions } from '../options.ts'
import { revokeReported } from '../tokens-to-revoke-again.ts'
import type { WorkerRegistry } from '../worker-registry.ts'
import { connectedWorker } from './heartbeat.ts'

export interface RevocationsDependencies {
  options: FleetOptions
  registry: WorkerRegistry
  stateHead: StateHead
}

export const revocationsRoute = ({ options, registry, stateHead }: RevocationsDependencies) =>
  new Elysia({ name: 'runtime revocations' }).use(conventions).post(
    '/v1/gateway-runtime/revocations',
    async ({ principal, body }) => {
      const { worker } = await connectedWorker(registry, principal, body.worker, body.stream_id)
      const revoked = await revokeReported(options, worker, body.revocations)
      if (revoked > 0) {
        options.log.warn({ worker, revoked }, 'The restored state had active tokens that a gateway knows as revoked')
      }
      return { head: await stateHead.read(), revoked }
    },
    {
      access: 'runtime:session',
      internal: true,
      body: revocationsRequestSchema,
      response: revocationsReplySchema,
      detail: {
        tags: ['Gateway runtime'],
        summary: 'Tell what a worker has revoked in a history that the primary has lost',
      },
    },
  )

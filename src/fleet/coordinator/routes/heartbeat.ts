/** The heartbeat of a worker (fleet/README.md rule R3): what it has acknowledged, and whether its news are fresh. */
import { Elysia } from 'elysia'
import type { z } from 'zod'
import { conventions } from '../../../api/conventions.ts'
import { Failure } from '../../../failure.ts'
import type { Principal } from '../../../identity/principal.ts'
import { timestamp } from '../../../lib/clock.ts'
import type { Head } from '../../../store/propagation.ts'
import { type HeartbeatReply, heartbeatReplySchema, heartbeatRequestSchema, workerName } from '../../protocol/wire.ts'
import type { StateHead } from '../../state/state-head.ts'
import type { FleetOptions } from '../options.ts'
import type { RuntimeTokens } from '../runtime-token.ts'
import type { UsageControl } from '../usage.ts'
import type { Worker, WorkerRegistry } from '../worker-registry.ts'
import { sessionOf } from './stream.ts'

export interface HeartbeatDependencies {
  options: FleetOptions
  registry: WorkerRegistry
  stateHead: StateHead
  tokens: RuntimeTokens
  usage: Pick<UsageControl, 'marks'>
  /** Ends everything that was given for a runtime token. */
  endToken(tokenId: string): Promise<void>
}

export function heartbeatRoute({ options, registry, stateHead, tokens, usage, endToken }: HeartbeatDependencies) {
  return new Elysia({ name: 'runtime heartbeat' }).use(conventions).post(
    '/v1/gateway-runtime/heartbeat',
    async ({ principal, body }) => {
      const worker = await heldWorker(registry, principal, body.worker, body.stream_id)
      const { acknowledged_version: version, history, nonce, stale_after_ms: staleAfterMs = null } = body
      const known = await stateHead.knows({ version, history, nonce })
      const { head, fresh } = await stateHead.recent()
      registry.heartbeat(worker, known && acknowledges(body, head) ? version : 0, staleAfterMs)
      if (!(await tokens.active(worker.tokenId, head.version))) {
        await endToken(worker.tokenId)
        throw new Failure('invalid_api_token')
      }
      const reply: HeartbeatReply = {
        head,
        history: known ? 'known' : 'unknown',
        // A worker whose versions are of another history has news of that one.
        fresh: fresh && known && registry.isWritten,
        max_staleness_seconds: options.settings.max_staleness_seconds,
        ledger: await usage.marks(),
        now: timestamp(options.clock.now()),
      }
      return reply
    },
    {
      access: 'runtime:session',
      internal: true,
      body: heartbeatRequestSchema,
      response: heartbeatReplySchema,
      detail: {
        tags: ['Gateway runtime'],
        summary: 'Say what a worker has acknowledged and ask whether its news are fresh',
      },
    },
  )
}

/**
 * Whether what a worker says it has is of what this primary has said: a primary restored from an older copy gives the same
 * versions to other changes, which an acknowledgement from before does not cover.
 */
function acknowledges(heartbeat: z.infer<typeof heartbeatRequestSchema>, head: Head): boolean {
  if (heartbeat.history !== head.history || heartbeat.acknowledged_version > head.version) return false
  return heartbeat.acknowledged_version < head.version || heartbeat.nonce === head.nonce
}

/**
 * The worker that a caller holds by its stream. Throws `worker_fenced` where another stream has it. Of a worker that is not
 * known here by this stream, connected to another control plane or to this one before a restart, the ledger's row says
 * who holds it.
 */
export async function heldWorker(
  registry: WorkerRegistry,
  principal: Principal,
  workerNumber: number,
  streamId: string,
): Promise<Worker> {
  const { gatewayId, instanceId, tokenId } = sessionOf(principal)
  const name = workerName(gatewayId, instanceId, workerNumber)
  const known = registry.get(name)
  if (known?.streamId === streamId) {
    // A runtime token may have been rotated since: what counts is the one behind the newest session.
    known.tokenId = tokenId
    return known
  }
  const row = await registry.row(name)
  if (row?.stream_id !== streamId) throw new Failure('worker_fenced')
  const worker: Worker = {
    worker: name,
    gatewayId,
    instanceId,
    workerNumber,
    tokenId,
    streamId,
    process: '',
    stream: null,
    // Its heartbeat says it again, and that is held against the primary as it is now.
    acknowledgedVersion: 0,
    lastHeartbeatAt: null,
    staleAfterMs: null,
  }
  const now = registry.get(name)
  return now?.streamId === streamId ? now : registry.adopt(worker)
}

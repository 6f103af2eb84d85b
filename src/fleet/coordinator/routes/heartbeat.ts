/** The heartbeat of a worker (fleet/README.md rule R3): what it has acknowledged, and whether its state is fresh. */
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
  usage: Pick<UsageControl, 'epoch'>
  /** Ends everything that was given for a runtime token. */
  endToken(tokenId: string): Promise<void>
}

export function heartbeatRoute({ options, registry, stateHead, tokens, usage, endToken }: HeartbeatDependencies) {
  return new Elysia({ name: 'runtime heartbeat' }).use(conventions).post(
    '/v1/gateway-runtime/heartbeat',
    async ({ principal, body }) => {
      const worker = await connectedWorker(registry, principal, body.worker, body.stream_id)
      const { acknowledged_version: version, history, nonce, stale_after_ms: staleAfterMs = null } = body
      const known = await stateHead.knows({ version, history, nonce })
      const { head, fresh } = await stateHead.recent()
      registry.heartbeat(worker, known && acknowledges(body, head) ? version : 0, staleAfterMs)
      if (body.targets !== undefined) worker.targets = { at: options.clock.now(), health: body.targets }
      if (!(await tokens.active(worker.tokenId, head.version))) {
        await endToken(worker.tokenId)
        throw new Failure('invalid_api_token')
      }
      const reply: HeartbeatReply = {
        head,
        history: known ? 'known' : 'unknown',
        // A worker with versions of another history is fresh only for that history.
        fresh: fresh && known && registry.areHeartbeatsWritten,
        max_staleness_seconds: options.settings.max_staleness_seconds,
        ledger_epoch: await usage.epoch(),
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
 * Whether this primary has given the versions that a worker acknowledges. A primary restored from an older copy gives
 * the same versions to other changes, which an earlier acknowledgement does not cover.
 */
function acknowledges(heartbeat: z.infer<typeof heartbeatRequestSchema>, head: Head): boolean {
  if (heartbeat.history !== head.history || heartbeat.acknowledged_version > head.version) return false
  return heartbeat.acknowledged_version < head.version || heartbeat.nonce === head.nonce
}

/**
 * The worker that the caller owns by its stream. Throws `worker_fenced` if another stream has it. If this stream is
 * not known here, because the worker is connected to another control plane or was to this one before a restart, the
 * ledger's row names the owner.
 */
export async function connectedWorker(
  registry: WorkerRegistry,
  principal: Principal,
  workerNumber: number,
  streamId: string,
): Promise<Worker> {
  const { gatewayId, instanceId, tokenId } = sessionOf(principal)
  const name = workerName(gatewayId, instanceId, workerNumber)
  const known = registry.get(name)
  if (known?.streamId === streamId) {
    // The runtime token may have been rotated. The one of the newest session counts.
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
    // Its heartbeat repeats it, and is checked against the present primary.
    acknowledgedVersion: 0,
    lastHeartbeatAt: null,
    staleAfterMs: null,
  }
  const now = registry.get(name)
  return now?.streamId === streamId ? now : registry.adopt(worker)
}

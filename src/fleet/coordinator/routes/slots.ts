/** Slots of limits a minute for a worker (usage/rate/README.md; usage/rate/rate.ts). */
import { Elysia } from 'elysia'
import { conventions } from '../../../api/conventions.ts'
import type { LimitRows } from '../../../store/limit-rows.ts'
import { noPeers, type RecallPeers } from '../../../usage/lease/recall-peers.ts'
import { answerSlots } from '../../../usage/rate/rate-ledger.ts'
import { slotsOf } from '../../../usage/rate/rate-limits.ts'
import { slotsReplySchema, slotsRequestSchema } from '../../../usage/rate/rate-protocol.ts'
import type { FleetOptions } from '../options.ts'
import { recallSlots } from '../usage.ts'
import type { WorkerRegistry } from '../worker-registry.ts'
import { connectedWorker } from './heartbeat.ts'

export interface SlotsDependencies {
  options: FleetOptions
  registry: WorkerRegistry
  limitRows: LimitRows
  peers?: RecallPeers
}

export function slotsRoute({ options, registry, limitRows, peers = noPeers }: SlotsDependencies) {
  const { ledger, clock, newId } = options
  const sides = {
    slotsOf: (account: string) => slotsOf(limitRows, account),
    ledger,
    now: () => clock.now(),
    newId,
    sleep: (milliseconds: number) => Bun.sleep(milliseconds),
    recall(account: string, want: number, workers: readonly string[], at: number) {
      const connected = (worker: string) => (registry.get(worker)?.stream ?? null) !== null
      const [here, elsewhere] = [workers.filter(connected), workers.filter((worker) => !connected(worker))]
      recallSlots(registry, { kind: 'slots', account, want, workers: here, at })
      if (elsewhere.length > 0) peers.send({ kind: 'slots', account, want, workers: elsewhere, at })
    },
  }
  return new Elysia({ name: 'runtime slots' }).use(conventions).post(
    '/v1/gateway-runtime/slots',
    async ({ principal, body }) => {
      const { worker } = await connectedWorker(registry, principal, body.worker, body.stream_id)
      return await answerSlots(sides, worker, body.balances)
    },
    {
      access: 'runtime:session',
      internal: true,
      body: slotsRequestSchema,
      response: slotsReplySchema,
      detail: {
        tags: ['Gateway runtime'],
        summary: 'Ask for slots of limits a minute, and return those that are cold',
      },
    },
  )
}

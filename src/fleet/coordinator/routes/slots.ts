/** Slots of limits a minute for a lane (protocols section 2, rule 21; usage/rate/rate.ts). */
import { type AnyRoute, route } from '../../../api/route.ts'
import type { LimitRows } from '../../../store/limit-rows.ts'
import { noPeers, type RecallPeers } from '../../../usage/lease/recall-peers.ts'
import { answerSlots } from '../../../usage/rate/rate-ledger.ts'
import { slotsOf } from '../../../usage/rate/rate-limits.ts'
import { slotsReplySchema, slotsRequestSchema } from '../../../usage/rate/rate-protocol.ts'
import type { FleetOptions } from '../options.ts'
import { recallSlots } from '../usage.ts'
import type { LaneRegistry } from '../worker-registry.ts'
import { heldLane } from './heartbeat.ts'

export interface SlotsDependencies {
  options: FleetOptions
  registry: LaneRegistry
  limitRows: LimitRows
  peers?: RecallPeers
}

export function slotsRoute({ options, registry, limitRows, peers = noPeers }: SlotsDependencies): AnyRoute {
  const { ledger, clock, newId } = options
  const sides = {
    slotsOf: (account: string) => slotsOf(limitRows, account),
    ledger,
    now: () => clock.now(),
    newId,
    sleep: (milliseconds: number) => Bun.sleep(milliseconds),
    recall(account: string, want: number, lanes: readonly string[], at: number) {
      const connected = (lane: string) => (registry.get(lane)?.stream ?? null) !== null
      const [here, elsewhere] = [lanes.filter(connected), lanes.filter((lane) => !connected(lane))]
      recallSlots(registry, { kind: 'slots', account, want, lanes: here, at })
      if (elsewhere.length > 0) peers.tell({ kind: 'slots', account, want, lanes: elsewhere, at })
    },
  }
  return route({
    method: 'POST',
    path: '/v1/gateway-runtime/slots',
    tag: 'Gateway runtime',
    summary: 'Ask for slots of limits a minute, and return those that are cold',
    access: 'runtime:session',
    body: slotsRequestSchema,
    reply: slotsReplySchema,
    internal: true,
    async handle({ principal, body }) {
      const { lane } = await heldLane(registry, principal, body.lane, body.stream_id)
      return { reply: await answerSlots(sides, lane, body.cells) }
    },
  })
}

/** Slots of limits a minute for a lane (protocols section 2, rule 21; usage/rate.ts). */
import { type AnyRoute, route } from '../api/route.ts'
import { answerSlots } from '../usage/rate-ledger.ts'
import { slotsReplySchema, slotsRequestSchema } from '../usage/rate-wire.ts'
import { heldLane } from './beat-route.ts'
import type { FleetOptions } from './control.ts'
import type { LaneRegistry } from './lane-registry.ts'

export function slotsRoute({ options, registry }: { options: FleetOptions; registry: LaneRegistry }): AnyRoute {
  const { state, ledger, clock, newId } = options
  const sides = {
    state,
    ledger,
    now: () => clock.now(),
    newId,
    sleep: (milliseconds: number) => Bun.sleep(milliseconds),
    recall(account: string, want: number, lanes: readonly string[], at: number) {
      for (const lane of lanes) registry.get(lane)?.stream?.send({ kind: 'slots', account, want, at })
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

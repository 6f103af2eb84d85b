/**
 * What one frame of a stream costs: many streams of forty frames at once, through a bare relay and through Gatehouse
 * with and without a policy on the answer. The provider writes each frame by itself and waits for the next millisecond
 * before it writes another, so that frames arrive one by one; how they arrived is counted where they are received.
 * The first write has the first three events, the last one what ends the stream.
 */
import { Connections, requestBytes } from '../generator/connections.ts'
import { streamBody } from '../rig/target.ts'
import type { Contender } from './contenders.ts'
import { connections, costsOf, inTurn, spentFor } from './cost.ts'

export const framesOfStream = 40
const pauseMs = 1

export interface FrameCost {
  streams: number
  failed: number
  /** Microseconds of processor time of the gateway, and of the control plane, for each frame. */
  gateway: number
  main_thread: number
  other_threads: number
  control_plane: number | null
  ratio_to_bare: number
  frames_per_read: number
}

async function relay({ target }: Contender, seconds: number) {
  using open = new Connections(target)
  await open.open(connections)
  const request = requestBytes(target, streamBody(framesOfStream, pauseMs))
  const startedAt = performance.now()
  let [streams, failed, reads] = [0, 0, 0]
  const caller = async () => {
    while (performance.now() < startedAt + seconds * 1000) {
      const { ok, end } = await open.send(request, (text) => {
        if (text.includes('"content":"')) reads++
      })
      if (ok && end.includes('data: [DONE]\n\n')) streams++
      else failed++
    }
  }
  await Promise.all(Array.from({ length: connections }, caller))
  return { requests: streams, failed, seconds: (performance.now() - startedAt) / 1000, reads }
}

/** By name; the first contender is the relay that the others are compared with. */
export async function measureFrames(
  contenders: readonly Contender[],
  rounds: number,
  seconds: number,
): Promise<Record<string, FrameCost>> {
  for (const contender of contenders) await relay(contender, 1)
  const loads = await inTurn(contenders, rounds, (contender) => spentFor(contender, () => relay(contender, seconds)))
  const found = Object.entries(costsOf(loads)).map(([name, cost]) => {
    const reads = (loads.get(name) ?? []).reduce((all, load) => all + load.reads, 0)
    const frame: FrameCost = {
      streams: cost.requests,
      failed: cost.failed,
      gateway: cost.gateway / framesOfStream,
      main_thread: cost.main_thread / framesOfStream,
      other_threads: cost.other_threads / framesOfStream,
      control_plane: cost.control_plane === null ? null : cost.control_plane / framesOfStream,
      ratio_to_bare: cost.ratio_to_bare,
      frames_per_read: (cost.requests * framesOfStream) / reads,
    }
    return [name, frame] as const
  })
  return Object.fromEntries(found)
}

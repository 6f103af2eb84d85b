/**
 * Streams that are held open: the time until their first text, added by the gateway, and its memory while it holds
 * them.
 */
import { residentBytes } from '../../support/processes.ts'
import { settle } from '../events/ledger-count.ts'
import { holdStreams, overloadStreams, type Timed } from '../generator/open-loop.ts'
import type { Contender } from './contenders.ts'
import { inTurn, type Latency, latencyOf } from './cost.ts'

export interface HeldStreams {
  name: string
  failed: number
  /** Until the first text, by contender. */
  first_text: Readonly<Record<string, Latency>>
}

export interface StreamPlan {
  /** How many streams are held at once, one measurement for each. */
  held: readonly number[]
  seconds: number
  rounds: number
  /** How often each caller asks for a stream where there are too many. */
  overloadRounds: number
}

async function measure(
  name: string,
  contenders: readonly Contender[],
  rounds: number,
  load: (contender: Contender) => Promise<Timed>,
): Promise<HeldStreams> {
  const found = await inTurn(contenders, rounds, load)
  const failed = [...found.values()].flat().reduce((sum, timed) => sum + timed.failed, 0)
  for (const { record } of contenders) if (record) await settle(record.dataDirectory)
  return { name, failed, first_text: Object.fromEntries([...found].map(([of, timed]) => [of, latencyOf(timed)])) }
}

export async function measureStreams(contenders: readonly Contender[], plan: StreamPlan): Promise<HeldStreams[]> {
  const measured: HeldStreams[] = []
  for (const count of plan.held) {
    const load = ({ target }: Contender) => holdStreams(target, count, plan.seconds)
    measured.push(await measure(`${count} streams held`, contenders, plan.rounds, load))
  }
  const most = Math.max(...plan.held)
  const load = ({ target }: Contender) => overloadStreams(target, most, plan.overloadRounds)
  if (plan.overloadRounds > 0) measured.push(await measure(`${most} callers without a pause`, contenders, 1, load))
  return measured
}

/** Of all its processes, in 10^6 bytes. */
export const residentMegabytes = ({ pids }: Contender): number =>
  pids.reduce((sum, pid) => sum + residentBytes(pid), 0) / 1e6

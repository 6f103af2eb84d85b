/** Reads from a running gateway's metrics how many events it has not shipped yet. */
import type { Probe } from './probe.ts'

const metric = /^gatehouse_outbox_unacknowledged_events(?:\{[^}]*\})? (\d+)/gm

/** The sum over all workers; null when it is not reported. */
export async function readUnacknowledged(probe: Probe, url: string): Promise<number | null> {
  const answer = await probe(`${url}/metrics`)
  const found = answer.kind === 'answered' ? [...answer.text.matchAll(metric)] : []
  return found.length === 0 ? null : found.reduce((sum, [, events]) => sum + Number(events), 0)
}

/** How many events a running gateway has not reported yet, by its own metrics. */
import type { Probe } from './probe.ts'

const metric = /^gatehouse_outbox_unshipped_events(?:\{[^}]*\})? (\d+)/gm

/** Of all its workers; null where it does not say. */
export async function readUnshipped(probe: Probe, url: string): Promise<number | null> {
  const answer = await probe(`${url}/metrics`)
  const found = answer.kind === 'answered' ? [...answer.text.matchAll(metric)] : []
  return found.length === 0 ? null : found.reduce((sum, [, events]) => sum + Number(events), 0)
}

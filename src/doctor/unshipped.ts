/** How many events a running gateway has not reported yet, by its own metrics. */
import type { Probe } from './probe.ts'

const metric = /^gatehouse_outbox_unshipped_events(?:\{[^}]*\})? (\d+)/m

/** Null where it does not say. */
export async function readUnshipped(probe: Probe, url: string): Promise<number | null> {
  const answer = await probe(`${url}/metrics`)
  const found = answer.kind === 'answered' ? metric.exec(answer.text)?.[1] : undefined
  return found === undefined ? null : Number(found)
}

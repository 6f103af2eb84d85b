import type { Database } from '../store/open.ts'

/** Beats are written down every second. */
const recentMilliseconds = 5000

/** How many lanes some control plane has heard of within the last seconds before `now`. */
export async function connectedLanes(ledger: Database, now: number): Promise<number> {
  const [{ lanes = 0 } = {}] = await ledger.read<{ lanes: number }>(
    'select count(*) as lanes from lanes where last_beat_at >= ?',
    [now - recentMilliseconds],
  )
  return lanes
}

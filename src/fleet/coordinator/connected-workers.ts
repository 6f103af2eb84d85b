import { type Database, databaseTime } from '../../store/open.ts'

/** Beats are written down every second. */
const recentMilliseconds = 5000

/** How many lanes some control plane has heard of within the last seconds, without those that have said goodbye. */
export async function connectedLanes(ledger: Database): Promise<number> {
  const [{ lanes = 0 } = {}] = await ledger.read<{ lanes: number }>(
    `select count(*) as lanes from lanes where left_at is null and last_beat_at >= ${databaseTime} - ?`,
    [recentMilliseconds],
  )
  return lanes
}

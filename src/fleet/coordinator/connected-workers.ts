import { type Database, databaseTime } from '../../store/open.ts'

/** Heartbeats are written down every second. */
const recentMilliseconds = 5000

/** How many workers some control plane has heard of within the last seconds, without those that have said goodbye. */
export async function connectedWorkers(ledger: Database): Promise<number> {
  const [{ workers = 0 } = {}] = await ledger.read<{ workers: number }>(
    `select count(*) as workers from workers where left_at is null and last_heartbeat_at >= ${databaseTime} - ?`,
    [recentMilliseconds],
  )
  return workers
}

import { type Database, databaseTime } from '../../store/open.ts'

/** Heartbeats are written every second. */
const recentMilliseconds = 5000

/** How many workers have sent a heartbeat to any control plane within the last seconds and have not deregistered. */
export async function connectedWorkers(ledger: Database): Promise<number> {
  const [{ workers = 0 } = {}] = await ledger.read<{ workers: number }>(
    `select count(*) as workers from workers where left_at is null and last_heartbeat_at >= ${databaseTime} - ?`,
    [recentMilliseconds],
  )
  return workers
}

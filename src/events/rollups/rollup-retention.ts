/**
 * Removes expired sums: minutes after 48 hours, hours and days with their events. A few rows at a time, yielding in
 * between.
 */
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import type { Database } from '../../store/open.ts'
import { minutesKeptMilliseconds } from './rollup.ts'

const rowsAtOnce = 500
/** The rest waits for the next call. */
const batchesAtOnce = 20

/** `retention` in milliseconds. Call every few seconds. */
export async function removeOldRollups(ledger: Database, { now, retention }: { now: number; retention: number }) {
  await removeBefore(ledger, "step = 'minute'", now - minutesKeptMilliseconds)
  await removeBefore(ledger, "step <> 'minute'", now - retention)
}

async function removeBefore(ledger: Database, steps: string, before: number): Promise<void> {
  const old = `select rowid from event_rollups where ${steps} and at < ?`
  for (let batch = 0; batch < batchesAtOnce; batch += 1) {
    if ((await ledger.read(`${old} limit 1`, [before])).length === 0) return
    await ledger.write([
      { sql: `delete from event_rollups where rowid in (${old} limit ${rowsAtOnce})`, args: [before] },
    ])
    await yieldToEventLoop()
  }
}

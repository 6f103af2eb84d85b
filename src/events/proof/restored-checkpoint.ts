/**
 * A state that was restored from an older copy has the checkpoint of then, and a new one has none. The newest is signed
 * as before in the ledger, so it is put in the state again: hosts that have seen it need not take a restored state for
 * one that hides something (events/proof/README.md).
 */
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log/log.ts'
import type { Database } from '../../store/open.ts'
import { parseCheckpoint, readKeptCheckpoints, readStateCheckpoint } from './checkpoint.ts'
import { readKeyRing, type Signed } from './checkpoint-key.ts'
import { replaceCheckpoint } from './checkpoint-writer.ts'

interface RestoredOptions {
  state: Database
  ledger: Database
  clock: Pick<Clock, 'now'>
  log: Log
}

/** Puts it there where the state's own is an older one. What was altered stays as it is: it is evidence. */
export async function putCheckpointBack({ state, ledger, clock, log }: RestoredOptions): Promise<void> {
  const keys = await readKeyRing(ledger)
  const good = (signed: Signed): number | null =>
    keys.check('checkpoint', signed) === 'good' ? (parseCheckpoint(signed.body)?.number ?? null) : null
  const [newest] = await readKeptCheckpoints(ledger, 'order by number desc limit 1')
  const number = newest === undefined ? null : good(newest)
  const present = await readStateCheckpoint(state)
  const former = present === null ? 0 : good(present)
  if (newest === undefined || number === null || former === null || former >= number) return
  await state.write(replaceCheckpoint(newest, { number, former, at: clock.now() }))
  log.warn({ former, number }, 'The restored state had an older checkpoint than the ledger: the newest was put back')
}

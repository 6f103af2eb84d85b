/**
 * A state that was restored from an older copy has an older checkpoint, and a new state has none. The newest one is
 * also in the ledger, with its signature, so it is written to the state again: hosts that have seen it then need not
 * suspect that the state hides something (events/proof/README.md).
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

/** Writes it if the state's own is older. An altered one stays, since it is evidence. */
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
  log.warn(
    { former, number },
    'The restored state had an older checkpoint than the ledger: the newest was written to it',
  )
}

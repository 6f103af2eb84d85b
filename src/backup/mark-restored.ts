/**
 * Tells a restored ledger what it cannot know, so that the next start handles it as what it is (usage/lease/README.md
 * rule 17, fleet/README.md rule R1). SQL text: the tables of another file are joined, and `max` of several columns is
 * taken, which cannot be built.
 *
 *  - Workers of its last day are marked as pending reconciliation: nothing is granted until they say what they hold.
 *  - Tokens that ended since the copy are ended in it, where the former ledger can still be read.
 *  - The newest head of the state that is kept fits no state, so the start takes the state for restored: it revokes
 *    there what the ledger says has ended, and asks gateways for the revocations that neither has.
 */
import { Database } from 'bun:sqlite'
import { existsSync } from 'node:fs'

const dayMilliseconds = 86_400_000

/** How many tokens were ended again. `former` is the ledger that the copy replaces; it may be missing or damaged. */
export function markRestored(ledger: string, former: string, now: number): { endedAgain: number } {
  const database = new Database(ledger, { readwrite: true, create: false })
  try {
    database.run('pragma journal_mode = delete')
    const endedAgain = existsSync(former) ? endAgain(database, former) : 0
    database.run(`update workers set pending_reconciliation = 1 where released_at is null
      and max(last_heartbeat_at, connected_at) > (select max(max(last_heartbeat_at, connected_at)) from workers) - ${dayMilliseconds}`)
    database.run(
      `insert into ledger_epoch (writer, written, at) values ('restored', 1, ?)
        on conflict (writer) do update set written = written + 1, at = excluded.at`,
      [now],
    )
    // Of the form of a change, which the detector looks for and does not find.
    database.run('update known_state_head set nonce = ?', [crypto.randomUUID()])
    return { endedAgain }
  } finally {
    database.close()
  }
}

/** Zero where the former ledger cannot be read: gateways say then what they refuse. */
function endAgain(database: Database, former: string): number {
  try {
    database.run('attach ? as former', [former])
  } catch {
    return 0
  }
  try {
    const ended = `former.tokens f where f.id = tokens.id and (f.revoked_at is not null or f.rotated_at is not null)`
    const { changes } = database.run(
      `update tokens set
        revoked_at = coalesce(revoked_at, (select f.revoked_at from ${ended}), (select f.rotated_at from ${ended}))
        where revoked_at is null and rotated_at is null and exists (select 1 from ${ended})`,
    )
    return changes
  } catch {
    return 0
  } finally {
    database.run('detach former')
  }
}

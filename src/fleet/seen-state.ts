/**
 * What the control planes have seen of the state, kept in the ledger: by it one that starts, or finds the state changed
 * under its hands, knows that the state was restored from an older copy (protocols section 4, rule 1).
 */
import type { Log } from '../lib/log.ts'
import type { Database } from '../store/open.ts'
import type { StateHead } from './state-head.ts'
import type { Head } from './wire.ts'

export interface SeenStateOptions {
  ledger: Database
  stateHead: StateHead
  log: Log
  /** Mends what a restore has brought back; run until it has succeeded once. */
  mend(): Promise<void>
}

export class SeenState {
  readonly #options: SeenStateOptions
  #kept: Head | null = null

  constructor(options: SeenStateOptions) {
    this.#options = options
  }

  /** Compares the head with what was seen before, mends where that is not of this state's history, and keeps it. */
  async see(head: Head): Promise<void> {
    const { ledger, stateHead, log, mend } = this.#options
    if (this.#kept !== null && isSame(this.#kept, head)) return
    const [seen] = await ledger.read<Head>('select version, nonce, history from state_seen where id = 1')
    const lost = seen !== undefined && !(await stateHead.knows(seen))
    if (lost) {
      log.error({ seen: seen.version, version: head.version }, 'The state was restored from an older copy or replaced')
      await mend()
    }
    await ledger.write([
      {
        sql: `insert into state_seen (id, version, nonce, history) values (1, ?, ?, ?)
          on conflict (id) do update set version = excluded.version, nonce = excluded.nonce, history = excluded.history
          where ? or state_seen.version < excluded.version`,
        args: [head.version, head.nonce, head.history, lost ? 1 : 0],
      },
    ])
    this.#kept = head
  }
}

const isSame = (one: Head, other: Head): boolean =>
  one.version === other.version && one.nonce === other.nonce && one.history === other.history

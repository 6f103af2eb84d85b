/**
 * Detects a state that was restored from an older copy or replaced: the ledger stores the newest known head with each
 * change (events/change.ts), and such a state does not know it (fleet/README.md rule R1). Each control plane checks at
 * its start and with each new head.
 */
import type { Log } from '../../lib/log/log.ts'
import type { Database } from '../../store/open.ts'
import type { Head } from '../../store/propagation.ts'
import type { StateHead } from '../state/state-head.ts'

export interface RestoreDetectorOptions {
  ledger: Database
  stateHead: StateHead
  log: Log
  /** Repairs what a restore has undone. Repeated until it succeeds once. */
  repair(): Promise<void>
}

export class RestoreDetector {
  readonly #options: RestoreDetectorOptions
  #kept: Head | null = null

  constructor(options: RestoreDetectorOptions) {
    this.#options = options
  }

  /** The state was replaced: forgets the checked head. */
  forget(): void {
    this.#kept = null
  }

  /** Compares the head with the stored one, repairs if the state does not know that, and stores the new head. */
  async check(head: Head): Promise<void> {
    const { ledger, stateHead, log, repair } = this.#options
    if (this.#kept !== null && isSame(this.#kept, head)) return
    const [seen] = await ledger.read<Head>('select version, nonce, history from known_state_head where id = 1')
    if (seen === undefined || !(await stateHead.knows(seen))) {
      if (seen !== undefined) {
        log.error(
          { seen: seen.version, version: head.version },
          'The state was restored from an older copy or replaced',
        )
        await repair()
      }
      const { version, nonce, history } = await stateHead.read()
      await ledger.write([
        {
          sql: 'insert or replace into known_state_head (id, version, nonce, history) values (1, ?, ?, ?)',
          args: [version, nonce, history],
        },
      ])
    }
    this.#kept = head
  }
}

const isSame = (one: Head, other: Head): boolean =>
  one.version === other.version && one.nonce === other.nonce && one.history === other.history

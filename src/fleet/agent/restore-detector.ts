/**
 * The newest head of the state that the ledger knows of, kept with each change (events/change.ts): a state that does not
 * know it was restored from an older copy, or is another one (fleet/README.md rule R1). Looked at by each control plane
 * when it starts and with each head that is new to it.
 */
import type { Log } from '../../lib/log/log.ts'
import type { Database } from '../../store/open.ts'
import type { Head } from '../../store/propagation.ts'
import type { StateHead } from '../state/state-head.ts'

export interface RestoreDetectorOptions {
  ledger: Database
  stateHead: StateHead
  log: Log
  /** Mends what a restore has brought back; run until it has succeeded once. */
  repair(): Promise<void>
}

export class RestoreDetector {
  readonly #options: RestoreDetectorOptions
  #kept: Head | null = null

  constructor(options: RestoreDetectorOptions) {
    this.#options = options
  }

  /** The state is another one: what was looked at counts no more. */
  forget(): void {
    this.#kept = null
  }

  /** Compares the head with what is known, mends where that is not of this state's history, and keeps it instead. */
  async check(head: Head): Promise<void> {
    const { ledger, stateHead, log, repair } = this.#options
    if (this.#kept !== null && isSame(this.#kept, head)) return
    const [seen] = await ledger.read<Head>('select version, nonce, history from state_seen where id = 1')
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
          sql: 'insert or replace into state_seen (id, version, nonce, history) values (1, ?, ?, ?)',
          args: [version, nonce, history],
        },
      ])
    }
    this.#kept = head
  }
}

const isSame = (one: Head, other: Head): boolean =>
  one.version === other.version && one.nonce === other.nonce && one.history === other.history

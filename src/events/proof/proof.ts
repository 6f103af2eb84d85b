/** The control plane's proof of its events: its key, checkpoints and retention. */
import { join } from 'node:path'
import type { Settings } from '../../config.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log/log.ts'
import type { Database } from '../../store/open.ts'
import type { Head } from '../../store/propagation.ts'
import { removeOldEvents } from '../retention/retention.ts'
import { readStateCheckpoint } from './checkpoint.ts'
import { loadSigningKey, publishKey } from './checkpoint-key.ts'
import { completeCheckpoint, signCheckpoint } from './checkpoint-writer.ts'
import { checkCheckpoint, readKnownCheckpoint } from './known-checkpoint.ts'

interface ProofOptions {
  state: Database
  ledger: Database
  dataDirectory: string
  /** A checkpoint has changed the state. */
  announce(head: Head): void
  clock: Clock
  log: Log
  settings: Pick<Settings, 'checkpoint_key_file' | 'event_retention_days' | 'sink_hold_days'>
  /** The position from which somebody still needs the log; null where nobody does. */
  heldFrom(): Promise<number | null>
}

interface Proof {
  /** The last checkpoint that this control plane has seen: see `known-checkpoint.ts`. */
  seen(): ReturnType<typeof readKnownCheckpoint>
  /** From now on signs and removes every few seconds, in the background. */
  start(): void
  /** Resolves when what runs is done; nothing follows. */
  stop(): Promise<void>
}

const everyMs = 5000
const firstMs = 500
const signedWith = 'Checkpoints are signed with this key: note its id to verify events later'
/** How long retention pauses once everything old enough is removed. */
const restMs = 600_000

/** Reads or makes the signing key and publishes its public half. Throws `invalid_parameter` if there is no key. */
export async function createProof(options: ProofOptions): Promise<Proof> {
  const { ledger, clock, log, settings } = options
  const key = loadSigningKey(settings.checkpoint_key_file ?? join(options.dataDirectory, 'checkpoint-key'))
  await ledger.write([publishKey(key, clock.now())])
  await completeCheckpoint({ ...options, key })
  let restUntil = Number.NEGATIVE_INFINITY
  const retain = async () => {
    if (clock.monotonic() < restUntil) return
    const { removed, finished } = await removeOldEvents({ ...options, key })
    if (finished) restUntil = clock.monotonic() + restMs
    if (removed > 0) log.info({ removed }, 'Events older than event_retention_days were removed')
  }
  const seenFile = join(options.dataDirectory, 'checkpoint.json')
  let told: string | null = null
  const look = async () => {
    const wrong = checkCheckpoint(seenFile, await readStateCheckpoint(options.state))
    if (wrong !== null && wrong !== told)
      log.error({ how: wrong, file: seenFile }, "The state's checkpoint does not continue the last known one")
    told = wrong
  }
  let named = false
  const turn = async () => {
    if (!named) log.info({ checkpoint_key: key.id }, signedWith)
    named = true
    for (const work of [() => signCheckpoint({ ...options, key }), look, retain]) {
      await work().catch((error: unknown) => {
        log.error({ error: String(error) }, 'Events could not be signed or removed: it will be tried again')
      })
    }
  }
  let timer: Timer | null = null
  let running: Promise<void> = Promise.resolve()
  let stopped = false
  const next = (milliseconds: number) => {
    if (stopped) return
    timer = setTimeout(() => {
      running = turn()
      void running.then(() => next(everyMs))
    }, milliseconds)
  }
  return {
    seen: () => readKnownCheckpoint(seenFile),
    start: () => next(firstMs),
    async stop() {
      stopped = true
      if (timer !== null) clearTimeout(timer)
      await running
    },
  }
}

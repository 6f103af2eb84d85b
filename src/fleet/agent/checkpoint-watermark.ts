/**
 * Compares the checkpoints in the gateway's state with the highest one it has seen (events/proof/README.md), which it
 * keeps in its data directory. A checkpoint that is older, differs under the same number, belongs to another series,
 * or lacks a part of a chain shows that the state was restored or rewritten. That is logged, counted and recorded as
 * an event, once for each such checkpoint.
 */
import { Database } from 'bun:sqlite'
import { existsSync, realpathSync, statSync } from 'node:fs'
import { z } from 'zod'
import { type Event, noAttribution } from '../../events/event.ts'
import { hasRegressed, longestCheckpoint, parseCheckpoint, signedSchema } from '../../events/proof/checkpoint.ts'
import type { Signed } from '../../events/proof/checkpoint-key.ts'
import { readKnownCheckpoint, rememberCheckpoint } from '../../events/proof/known-checkpoint.ts'
import { type Clock, timestamp } from '../../lib/clock.ts'
import type { NewId } from '../../lib/ids.ts'
import type { Log } from '../../lib/log/log.ts'

const lookEveryMs = 5000
const restoredMs = 30_000
const rowSchema = signedSchema.omit({ body: true }).extend({ number: z.number() })
const lengthSchema = z.object({ length: z.number() })
const ofRestored = ['older', 'not_a_checkpoint']

export interface CheckpointWatermarkOptions {
  /** The state database's file, by which the gateway decides. */
  stateFile: string
  /** The file with the highest checkpoint. */
  keptFile: string
  clock: Pick<Clock, 'now'>
  newId: NewId
  log: Log
  /** Records an event of this gateway. */
  record(event: Event): void
  gatewayId(): string
}

export class CheckpointWatermark {
  readonly #options: CheckpointWatermarkOptions
  #kept: Signed | null
  #reportedSignature: string | null = null
  /** Whether it was said that the checkpoint is too long. */
  #saidTooLong = false
  /** Since when the checkpoint is behind the kept one. */
  #behindSince: number | null = null
  readonly #timer: Timer
  /** Kept open, because opening it reads the whole schema and blocks requests for milliseconds. */
  #state: { database: Database; inode: string } | null = null
  /** How often the state's checkpoint went back. */
  regressions = 0

  /** Checks every few seconds until `stop`. */
  constructor(options: CheckpointWatermarkOptions) {
    this.#options = options
    this.#kept = readKnownCheckpoint(options.keptFile)
    this.#timer = setInterval(() => {
      try {
        this.look()
      } catch (error) {
        // The state cannot be read at the moment, or is of an older version. The next check may succeed.
        options.log.debug({ error: String(error) }, "The state's checkpoint could not be read")
      }
    }, lookEveryMs)
    this.#timer.unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#close()
  }

  /** Compares the state's checkpoint with the kept one. */
  look(): void {
    const found = this.#read()
    if (found === null) return
    const isKept = found.signature === this.#kept?.signature
    const wrong = isKept || this.#kept === null ? null : hasRegressed(this.#kept.body, found.body)
    if (wrong === null || !ofRestored.includes(wrong)) this.#behindSince = null
    if (wrong === null) {
      if (!isKept) this.#keep(found)
    } else if (this.#reportedSignature !== found.signature && !this.#mayBeRestored(wrong)) this.#tell(found, wrong)
  }

  #mayBeRestored(wrong: string): boolean {
    if (!ofRestored.includes(wrong)) return false
    const now = this.#options.clock.now()
    this.#behindSince ??= now
    return now - this.#behindSince < restoredMs
  }

  /**
   * The state's checkpoint row; null before the first checkpoint, for the reported one, and where it is too long to
   * compare. Later, neither number 0 nor a missing row is valid. The body, even its length, is read only of a row that
   * is not the kept one: it may have megabytes.
   */
  #read(): Signed | null {
    if (!existsSync(this.#options.stateFile)) return null
    const row = this.#row('number, key_id, signature')
    if (row === null && this.#kept !== null) return { body: '', key_id: '', signature: '' }
    const parsed = rowSchema.safeParse(row)
    if (!parsed.success || (parsed.data.number === 0 && this.#kept === null)) return null
    const { signature } = parsed.data
    if (signature !== '' && signature === this.#kept?.signature) return this.#kept
    if (signature !== '' && signature === this.#reportedSignature) return null
    // SQLite knows the bytes of a text without reading it, but counts its characters.
    const { length } = lengthSchema.parse(this.#row('octet_length(body) as length'))
    if (length > longestCheckpoint) {
      this.#sayTooLong(length)
      return null
    }
    return signedSchema.parse(this.#row('body, key_id, signature'))
  }

  #sayTooLong(length: number): void {
    if (this.#saidTooLong) return
    this.#saidTooLong = true
    this.#options.log.warn(
      { length, longest: longestCheckpoint },
      "The state's checkpoint has too many chains to be compared: this gateway would not notice that the record was rewritten",
    )
  }

  #row(columns: string): unknown {
    const state = this.#opened()
    try {
      return state.query(`select ${columns} from checkpoints`).get()
    } catch (error) {
      this.#close()
      throw error
    }
  }

  /** Opens the file again if another file has replaced it. */
  #opened(): Database {
    const file = realpathSync(this.#options.stateFile)
    const { dev, ino } = statSync(file)
    const inode = `${dev}:${ino}`
    if (this.#state?.inode !== inode) {
      this.#close()
      this.#state = { database: new Database(file, { readonly: true }), inode }
    }
    return this.#state.database
  }

  #close(): void {
    this.#state?.database.close()
    this.#state = null
  }

  #keep(found: Signed): void {
    rememberCheckpoint(this.#options.keptFile, found)
    this.#kept = found
  }

  #tell(found: Signed, how: string): void {
    const { clock, newId, log, record, gatewayId } = this.#options
    const seen = this.#kept === null ? null : parseCheckpoint(this.#kept.body)
    const details = { how, seen: seen?.number ?? null, found: parseCheckpoint(found.body)?.number ?? null }
    this.#reportedSignature = found.signature
    this.regressions += 1
    log.error(details, "The state's checkpoint does not continue the last known one")
    record({
      event_id: newId(),
      event_type: 'gateway.checkpoint_regressed',
      request_id: null,
      timestamp: timestamp(clock.now()),
      verdict: 'error',
      reason_code: 'checkpoint.went_back',
      config_version: 0,
      event_attribution: { ...noAttribution, gateway_id: gatewayId() },
      details,
    })
  }
}

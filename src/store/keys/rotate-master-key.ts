/**
 * Rotates the master key while all goes on. Each step can be repeated, and every control plane of a ledger may do all
 * of them at once, so a rotation that was killed goes on at the next start.
 *
 *  1. Both keys are there: the next one in a file beside the first, or as SERVICE_MASTER_KEY_NEXT of every control
 *     plane, which the caller has asked. What either key sealed opens.
 *  2. `installation-key` is sealed under the next key. A control plane that sees it seals under the next key from then.
 *  3. Every sealed value is sealed anew, in pages, each value only where it is still what was read.
 *  4. Two rounds in a row find none left, and no change is pending in the ledger, which could bring one.
 *  5. A key in a file gives way to the next one and stays in `master-key-former`, for older backups. A key of a setting
 *     stays until control planes start with the next one in its place.
 *
 * A value can be sealed before step 2 and written after step 4, by a slow request or a control plane that stood still.
 * With a key in a file, the one process that there is opens it with the former key, and looks for such values after the
 * rotation and at each start. With keys of settings, the rotation is complete only when every control plane has sealed
 * under the next key for longer than a request takes; each looks for such values until it starts with the next key alone.
 */
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { and, asc, eq, gt, isNotNull } from 'drizzle-orm'
import { Failure } from '../../failure.ts'
import type { Database } from '../open.ts'
import { query } from '../query.ts'
import { pendingChanges } from '../schema/ledger/changes.ts'
import { keepFormerKey, makeNextKey, masterKeyFile, nextMasterKeyFile } from './load-master-key.ts'
import { installationKeyName, type MasterKey } from './master-key.ts'
import { type SealedPlace, sealedColumns } from './sealed-columns.ts'
import { readSecret } from './secrets.ts'

const page = 200
/** After so many rounds a process looks for values under the former key: when it has started, and after a rotation. */
const looks = { afterStart: [1], afterRotation: [2, 12, 60] } as const

export interface RotationState {
  /** `complete`: nothing is left under the former key, which is still the setting. */
  state: 'none' | 'ready' | 'running' | 'complete'
  /** Values that this process has sealed anew in this rotation. */
  resealed: number
}

interface RotationOptions {
  ledger: Database
  masterKey: MasterKey
  /** The master key is a setting, not a file. */
  isSetting: boolean
  /** Whether every control plane has sealed under the next key, of this fingerprint, for longer than a request takes. */
  everyoneHasSettled(fingerprint: string): Promise<boolean>
  dataDirectory: string
  randomBytes(size: number): Uint8Array
}

export class KeyRotation {
  readonly #options: RotationOptions
  /** In the last rotation, with what was found late. */
  #resealed = 0
  #cleanRounds = 0
  #hasSettled = false
  /** Rounds since the start or the last rotation, and in which of them it looks for late values. */
  #rounds = 0
  #looksIn: readonly number[] = looks.afterStart
  #stepping: Promise<void> | null = null

  constructor(options: RotationOptions) {
    this.#options = options
  }

  state(): RotationState {
    const { masterKey } = this.#options
    const of = (): RotationState['state'] => {
      if (masterKey.nextFingerprint === null) return 'none'
      if (!masterKey.rotationBegun) return 'ready'
      return this.#cleanRounds >= 2 && this.#hasSettled ? 'complete' : 'running'
    }
    return { state: of(), resealed: this.#resealed }
  }

  /**
   * Begins a rotation, or goes on with the one that was begun. `everyoneHolds` asks the other control planes whether
   * they have the next key too. Throws `conflict` where it is missing here or there.
   */
  async begin(everyoneHolds: (fingerprint: string) => Promise<boolean>): Promise<void> {
    const { masterKey, isSetting } = this.#options
    if (masterKey.rotationBegun) return
    if (!isSetting) masterKey.accept(makeNextKey(this.#options))
    const fingerprint = masterKey.nextFingerprint
    if (fingerprint === null) {
      throw new Failure('conflict', {
        message:
          'The master key is the setting SERVICE_MASTER_KEY: start every control plane with the next one as SERVICE_MASTER_KEY_NEXT first',
      })
    }
    if (!(await everyoneHolds(fingerprint))) {
      throw new Failure('conflict', {
        message: 'Another control plane does not have the same SERVICE_MASTER_KEY_NEXT: start each with it first',
      })
    }
    await this.#sealInstallationKey()
  }

  /** One round: run it every few seconds. */
  step(): Promise<void> {
    this.#stepping ??= this.#step().finally(() => {
      this.#stepping = null
    })
    return this.#stepping
  }

  async #step(): Promise<void> {
    const { masterKey, isSetting, everyoneHasSettled } = this.#options
    const fingerprint = masterKey.nextFingerprint
    if (fingerprint === null) return await this.#lookForLateValues()
    // A next key in a file was made because a rotation was asked for.
    if (!masterKey.rotationBegun && !isSetting) await this.#sealInstallationKey()
    if (!masterKey.rotationBegun) await this.#lookWhetherBegun()
    if (!masterKey.rotationBegun) return
    const isPending = (await query(this.#options.ledger).$count(pendingChanges)) > 0
    const left = await this.#resealAll()
    this.#resealed += left
    this.#cleanRounds = left === 0 && !isPending ? this.#cleanRounds + 1 : 0
    if (this.#cleanRounds < 2) return
    if (!isSetting) this.#replaceFile()
    // A control plane that runs with the next key alone asks nobody any more.
    else if (!this.#hasSettled) this.#hasSettled = await everyoneHasSettled(fingerprint)
  }

  async #lookForLateValues(): Promise<void> {
    if (!this.#options.masterKey.hasFormer) return
    this.#rounds += 1
    if (!this.#looksIn.includes(this.#rounds)) return
    const late = await this.#resealAll()
    this.#resealed += late
  }

  async #lookWhetherBegun(): Promise<void> {
    const { ledger, masterKey } = this.#options
    const kept = await readSecret(ledger, masterKey, installationKeyName)
    if (kept !== null && masterKey.sealedAnew('secret', installationKeyName, kept.sealed) === null) {
      this.#begun()
    }
  }

  async #sealInstallationKey(): Promise<void> {
    const { ledger, masterKey } = this.#options
    const kept = await readSecret(ledger, masterKey, installationKeyName)
    if (kept === null) throw new Error('The installation key is missing')
    const sealed = masterKey.sealedAnew('secret', installationKeyName, kept.sealed)
    if (sealed !== null) await ledger.write([resealStatement('secret', installationKeyName, kept.sealed, sealed)])
    this.#begun()
  }

  #begun(): void {
    if (this.#options.masterKey.rotationBegun) return
    this.#options.masterKey.beginRotation()
    this.#resealed = 0
  }

  /** How many values were not under the newest key. Throws `data_damaged` for one that no key opens. */
  async #resealAll(): Promise<number> {
    let found = 0
    for (const place of places) found += await this.#reseal(place)
    return found
  }

  async #reseal(place: SealedPlace): Promise<number> {
    const { ledger, masterKey } = this.#options
    const { table, id, sealed } = sealedColumns[place]
    let found = 0
    for (let after = ''; ; ) {
      const rows = await query(ledger)
        .select({ id, sealed })
        .from(table)
        .where(and(gt(id, after), isNotNull(sealed)))
        .orderBy(asc(id))
        .limit(page)
      const changes = rows.flatMap((row) => {
        const [name, value] = [String(row.id), String(row.sealed)]
        const next = sealedAnew(masterKey, place, name, value)
        return next === null ? [] : [resealStatement(place, name, value, next)]
      })
      if (changes.length > 0) await ledger.write(changes)
      found += changes.length
      const last = rows.at(-1)
      if (last === undefined || rows.length < page) return found
      after = String(last.id)
    }
  }

  #replaceFile(): void {
    const { dataDirectory, masterKey } = this.#options
    const path = (name: string) => join(dataDirectory, name)
    keepFormerKey(dataDirectory)
    renameSync(path(nextMasterKeyFile), path(masterKeyFile))
    masterKey.endRotation()
    this.#cleanRounds = 0
    this.#rounds = 0
    this.#looksIn = looks.afterRotation
  }
}

const places: readonly SealedPlace[] = ['second_factor', 'refresh_token', 'mcp_connection', 'secret']

function sealedAnew(masterKey: MasterKey, place: SealedPlace, id: string, sealed: string): string | null {
  try {
    return masterKey.sealedAnew(place, id, sealed)
  } catch (cause) {
    const message = `A sealed value of the ledger (${place} ${id}) opens with no master key: the rotation waits until it is mended or removed`
    throw new Failure('data_damaged', { message, cause })
  }
}

/** Changes nothing where the value is no longer what was read. */
function resealStatement(place: SealedPlace, id: string, from: string, to: string) {
  const column = sealedColumns[place]
  return column.put(to, and(eq(column.id, id), eq(column.sealed, from)))
}

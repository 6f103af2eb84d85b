/**
 * The folders of a sidecar's replica (fleet/replica/README.md). Each history of the primary is built in a folder of
 * its own. Gateways read it once `current` names it, by one rename:
 *
 *  replica/current -> 3
 *  replica/3/state.db, -wal, -shm, -client_wal_index   libSQL's four files, which are valid only together
 *  replica/3/log                                       the primary's log that they follow
 *
 * Libraries open an index without its database as an empty one, and a truncated log as an older state, without an
 * error. So every folder is checked before it is opened, and made anew if the check fails.
 */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'

const databaseName = 'state.db'
const indexBytes = 32
const logBytes = 16
const folderName = /^\d{1,9}$/

export class ReplicaFolders {
  readonly directory: string
  #last = 0

  constructor(directory: string) {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    this.directory = directory
  }

  /** The path that gateways open, through `current`. */
  get file(): string {
    return join(this.directory, 'current', databaseName)
  }

  fileOf(folder: number): string {
    return join(this.directory, String(folder), databaseName)
  }

  /** The folder that `current` names; null if there is none. */
  get current(): number | null {
    try {
      const named = readlinkSync(join(this.directory, 'current'))
      return folderName.test(named) ? Number(named) : null
    } catch {
      // Nothing is named yet.
      return null
    }
  }

  /** Makes the next folder, empty. A number is never reused, since a reader may still use the old one. */
  create(): number {
    this.#last = Math.max(this.#last, ...this.#folders()) + 1
    mkdirSync(join(this.directory, String(this.#last)), { mode: 0o700 })
    return this.#last
  }

  /** Lets gateways open the folder from now on. */
  name(folder: number): void {
    const link = join(this.directory, 'current.new')
    rmSync(link, { force: true })
    symlinkSync(String(folder), link)
    renameSync(link, join(this.directory, 'current'))
  }

  /** Lets gateways open none. */
  unname(): void {
    rmSync(join(this.directory, 'current'), { force: true })
  }

  /** Removes every folder except these. */
  prune(kept: readonly (number | null)[]): void {
    for (const folder of this.#folders()) {
      if (!kept.includes(folder)) rmSync(join(this.directory, String(folder)), { recursive: true, force: true })
    }
  }

  /** The primary's log that the folder follows; null before the primary has named it. */
  logOf(folder: number): string | null {
    const path = join(this.directory, String(folder), 'log')
    return existsSync(path) ? readFileSync(path, 'utf8') : null
  }

  follow(folder: number, log: string): void {
    const path = join(this.directory, String(folder), 'log')
    writeFileSync(`${path}.new`, log, { mode: 0o600 })
    renameSync(`${path}.new`, path)
  }

  /** Why the folder cannot be opened; null if all four files are there and fit together. */
  faultOf(folder: number): string | null {
    const file = this.fileOf(folder)
    for (const suffix of ['', '-wal', '-shm', '-client_wal_index']) {
      const found = statSync(`${file}${suffix}`, { throwIfNoEntry: false })
      if (found === undefined || (suffix === '' && found.size === 0)) return `${databaseName}${suffix} is missing`
    }
    const log = this.logOf(folder)
    if (log === null) return 'the file log is missing'
    const index = readFileSync(`${file}-client_wal_index`)
    if (index.length !== indexBytes) return `${databaseName}-client_wal_index has another size`
    return indexLog(index) === log ? null : `${databaseName}-client_wal_index is of another log`
  }

  #folders(): number[] {
    return readdirSync(this.directory)
      .filter((name) => folderName.test(name))
      .map(Number)
  }
}

/** libSQL's index begins with the log's UUID as one little-endian number. */
function indexLog(index: Buffer): string {
  const hex = Buffer.from(index.subarray(0, logBytes)).reverse().toString('hex')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

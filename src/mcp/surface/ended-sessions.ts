/**
 * The sessions that have ended, so that nobody makes one again from its id: the newest in memory. What its caller ended
 * (DELETE) is also in a file of the worker, which the other workers of the host and later starts read. The newest 15 000
 * of a worker are kept there at least.
 */
import { createHash } from 'node:crypto'
import { appendFileSync, readFileSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { LRUCache } from 'lru-cache'

const mostInMemory = 10_000
const fileName = 'ended-mcp-sessions'
/** A line has 33 bytes. A full file is kept until the next one is full. */
const longestFileBytes = 500_000

export interface EndedSessionFiles {
  /** The directory of this worker. */
  readonly own: string
  /** Those of all workers of the host. */
  readonly all: readonly string[]
}

interface Read {
  readonly state: string
  readonly digests: ReadonlySet<string>
}

export class EndedSessions {
  readonly #inMemory = new LRUCache<string, true>({ max: mostInMemory })
  readonly #own: string | null
  readonly #files: readonly string[]
  readonly #read = new Map<string, Read>()

  constructor(files: EndedSessionFiles | null = null) {
    this.#own = files === null ? null : join(files.own, fileName)
    this.#files = (files?.all ?? []).flatMap((directory) => [join(directory, fileName), join(directory, oldName)])
  }

  has(id: string): boolean {
    if (this.#inMemory.has(id)) return true
    const digest = digestOf(id)
    return this.#files.some((file) => this.#digestsOf(file).has(digest))
  }

  /** It has ended in this process. */
  add(id: string): void {
    this.#inMemory.set(id, true)
  }

  /** Its caller has ended it. Throws where the file cannot be written. */
  keep(id: string): void {
    this.add(id)
    if (this.#own === null) return
    if (sizeOf(this.#own) >= longestFileBytes) renameSync(this.#own, join(this.#own, '..', oldName))
    appendFileSync(this.#own, `${digestOf(id)}\n`, { mode: 0o600 })
  }

  /** A file is read again when it has changed. */
  #digestsOf(file: string): ReadonlySet<string> {
    const found = statSync(file, { throwIfNoEntry: false })
    if (found === undefined) return none
    const state = `${found.ino} ${found.size}`
    const known = this.#read.get(file)
    if (known?.state === state) return known.digests
    const digests = new Set(readFileSync(file, 'latin1').split('\n'))
    this.#read.set(file, { state, digests })
    return digests
  }
}

const none: ReadonlySet<string> = new Set()
const oldName = `${fileName}.old`

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0

const digestOf = (id: string): string => createHash('sha256').update(id).digest('hex').slice(0, 32)

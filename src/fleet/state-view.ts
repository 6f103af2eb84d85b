/**
 * The state database as a gateway reads it (protocols sections 7, 8): read-only, by bun:sqlite, from a file that
 * another process keeps current.
 *
 * The catalog is in memory. A token's record is compiled on first use by one indexed read and kept in an LRU, from
 * which each refresh takes what has changed since (`version > ?`). Where that read is ahead of the catalog, the catalog
 * is read with it: a token never comes without the limits and policies that it names. Refreshes read in pages, so that no read
 * transaction is long: an open one keeps the writer's log from being emptied. A file that was replaced (another inode)
 * or that holds another history is read anew.
 *
 * What cannot be read is `dependency_unavailable`, never "no such token". Denials that arrive ahead of the state are
 * kept until it has reached them.
 */
import { Database } from 'bun:sqlite'
import { realpathSync, statSync } from 'node:fs'
import { LRUCache } from 'lru-cache'
import { Failure } from '../failure.ts'
import type { PolicySet } from '../policies/chain.ts'
import type { GovernedToken } from '../tokens/governed.ts'
import { type LimitSet, noLimits } from '../usage/limits.ts'
import { version as productVersion } from '../version.ts'
import { type Catalog, CatalogView, type DataKeys, emptyCatalog } from './catalog-view.ts'
import { compileDelegated, delegatedColumns } from './delegated-row.ts'
import { compileToken, tokenColumns } from './governed-row.ts'
import type { CatalogModel, GatewayRecord, Grant, StateView } from './lane.ts'
import { LimitsView } from './limits-view.ts'
import { McpView } from './mcp-view.ts'
import type { StatePosition } from './outbox-record.ts'
import { PolicyView, readGrant } from './policy-view.ts'
import type { Head } from './wire.ts'

const tokensInMemory = 100_000
const pageRows = 2000

interface HeadRow extends Head {
  reads_from: string
  /** Deletions up to this version have been forgotten. */
  floor: number
}

interface Opened {
  database: Database
  inode: string
  token: ReturnType<Database['query']>
  delegated: ReturnType<Database['query']>
}

export class FileStateView implements StateView {
  readonly #file: string
  readonly #onDamaged: (reason: string) => void
  readonly #tokens = new LRUCache<string, GovernedToken>({ max: tokensInMemory })
  readonly #denials = new Map<string, StatePosition>()
  #opened: Opened | null = null
  #head: Head | null = null
  /** Names the version that the catalog, the limits and the policies were read at. */
  #catalogNonce: string | null = null
  #catalog: Catalog = emptyCatalog
  #limits: LimitSet = noLimits
  readonly #catalogs = new CatalogView()
  readonly #limitsView = new LimitsView()
  readonly #policies = new PolicyView()
  readonly mcp = new McpView()
  #keys: DataKeys = {}
  #tooNew: Failure | null = null
  #holding = false
  #gatewayId: string | null = null
  /** Settles when the refresh that runs has ended, however it ended: one runs at a time. */
  #refreshing: Promise<unknown> = Promise.resolve()

  /** `onDamaged` is told, in words, that the file is no sound database. */
  constructor(file: string, onDamaged: (reason: string) => void = () => undefined) {
    this.#file = file
    this.#onDamaged = onDamaged
  }

  /** The head of the state that was last loaded; null before the first load. */
  get head(): Head | null {
    return this.#head
  }

  get version(): number {
    return this.#head?.version ?? 0
  }

  /** Set while the state is of a form that this version must not decide by. */
  get tooNew(): Failure | null {
    return this.#tooNew
  }

  get cached(): number {
    return this.#tokens.size
  }

  get denials(): number {
    return this.#denials.size
  }

  /** Providers whose credentials the keys at hand do not open. */
  get closedProviders(): readonly string[] {
    return this.#catalog.closed
  }

  token(hash: string): GovernedToken | null {
    const known = this.#tokens.get(hash)
    if (known !== undefined) return known
    return this.#reading((opened) =>
      opened.database.transaction(() => {
        const compiled = readToken(opened, hash)
        if (compiled === null) return null
        this.#followCatalog(opened.database)
        this.#tokens.set(hash, compiled)
        return compiled
      })(),
    )
  }

  /** To be called inside a read transaction: whoever reads a row by itself may see it before the refresh of its version. */
  #followCatalog(database: Database): void {
    const head = this.#readHead(database)
    if (head.nonce === this.#catalogNonce) return
    this.#readCatalog(database, head, this.#head === null || !this.#follows(this.#head, head))
  }

  denied(hash: string): boolean {
    return this.#denials.has(hash)
  }

  model(id: string): CatalogModel | null {
    return this.#catalog.models.get(id) ?? null
  }

  models(): readonly CatalogModel[] {
    return this.#catalog.modelList
  }

  provider(id: string) {
    return this.#catalog.providers.get(id) ?? null
  }

  providers() {
    return this.#catalog.providerList
  }

  get policies(): PolicySet {
    return this.#policies.set
  }

  grant(tokenId: string, digest: string, now: number): Grant | null {
    return this.#reading(({ database }) => readGrant(database, tokenId, digest, now))
  }

  get limits(): LimitSet {
    return this.#limits
  }

  get gateway(): GatewayRecord {
    return this.#catalog.gateway
  }

  /** Whether the state read does not have the token, or has it as revoked: then a denial of it says nothing more. */
  refuses(hash: string): boolean {
    const token = this.token(hash)
    return token === null || token.revokedAt !== null
  }

  /** Refuses tokens until the state read is at `position`. */
  deny(position: StatePosition, hashes: readonly string[]): void {
    if (!this.#holding && this.#reached(position)) return
    for (const hash of hashes) {
      const known = this.#denials.get(hash)
      if (known?.history !== position.history || known.version < position.version) this.#denials.set(hash, position)
    }
  }

  /** Whether versions do not compare at present: the state that is read is of a history that the primary has lost. */
  holdDenials(holding: boolean): void {
    this.#holding = holding
  }

  /** Says which gateway's view of the catalog this is, with the keys it was given, and loads. */
  async load(gatewayId: string, keys: DataKeys): Promise<void> {
    this.#gatewayId = gatewayId
    this.#keys = keys
    if (this.#head !== null) {
      this.#reading(({ database }) =>
        database.transaction(() => this.#readCatalog(database, this.#readHead(database), false))(),
      )
    }
    await this.refresh()
  }

  /** Reads what has changed. Throws `dependency_unavailable` where the file cannot be read; then nothing changes. */
  refresh(): Promise<Head> {
    const refreshed = this.#refreshing.then(() => this.#refresh())
    this.#refreshing = refreshed.catch(() => undefined)
    return refreshed
  }

  async #refresh(): Promise<Head> {
    this.#reopenReplaced()
    for (;;) {
      const page = this.#reading(({ database }) => this.#readPage(database))
      for (const hash of page.changed) this.#tokens.delete(hash)
      this.#forgetTokensOf(page.limited)
      if (page.next === null) {
        this.#settle(page.head)
        return page.head
      }
      this.#pageFrom = page.next
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  close(): void {
    this.#opened?.database.close()
    this.#opened = null
  }

  /** Lets go of all that was read: none of it can be trusted. */
  forget(): void {
    this.close()
    this.#tokens.clear()
    this.#head = null
  }

  /** Where a refresh of many changes goes on: the last version and id that it has seen. */
  #pageFrom: { version: number; id: string } | null = null

  #readPage(database: Database) {
    return database.transaction(() => {
      const { floor, reads_from: _, ...head } = this.#readHead(database)
      // Below the floor, deletions would be missed.
      const same = this.#head !== null && this.#follows(this.#head, head) && this.#head.version >= floor
      if (!same || this.#tokens.size === 0) {
        this.#tokens.clear()
        if (this.#head?.nonce !== head.nonce) this.#readCatalog(database, head, !same)
        return { head, changed: [], limited: [], next: null }
      }
      if (this.#head?.version === head.version) return { head, changed: [], limited: [], next: null }
      const from = this.#pageFrom ?? { version: this.version, id: '\uffff' }
      const rows = database
        .query<{ id: string; hash: string; version: number }, [number, string, number]>(
          `select id, hash, version from tokens where (version, id) > (?, ?) order by version, id limit ?`,
        )
        .all(from.version, from.id, pageRows)
      const last = rows.at(-1)
      const next = rows.length < pageRows || last === undefined ? null : { version: last.version, id: last.id }
      if (next === null) this.#readCatalog(database, head, false)
      const limited = next === null ? readLimited(database, this.version) : []
      const delegated = next === null ? readDelegated(database, this.version) : []
      return { head, changed: [...rows.map(({ hash }) => hash), ...delegated], limited, next }
    })()
  }

  /** A clone holds the limits of its source, whose change leaves the clone's own row as it is. */
  #forgetTokensOf(accounts: readonly string[]): void {
    if (accounts.length === 0) return
    const changed = new Set(accounts)
    for (const [hash, token] of [...this.#tokens.entries()]) {
      if (token.accounts.some(({ id }) => changed.has(id))) this.#tokens.delete(hash)
    }
  }

  #readHead(database: Database): HeadRow {
    const row = database
      .query<HeadRow, []>('select version, nonce, history, reads_from, floor from state_head where id = 1')
      .get()
    if (row === null) throw new Failure('dependency_unavailable', { message: 'The state has no head' })
    if (Bun.semver.order(row.reads_from, productVersion) > 0) {
      this.#tooNew = new Failure('dependency_unavailable', {
        message: `This state needs version ${row.reads_from} or later of the gateway, which is ${productVersion}`,
      })
      throw this.#tooNew
    }
    this.#tooNew = null
    return row
  }

  /** `anew`: what was read before is of another file or history, or misses deletions. */
  #readCatalog(database: Database, { nonce }: Pick<Head, 'nonce'>, anew: boolean): void {
    this.#catalogNonce = nonce
    this.#policies.read(database, anew)
    if (this.#gatewayId === null) return
    this.#catalog = this.#catalogs.read(database, this.#gatewayId, this.#keys, anew)
    this.#limits = this.#limitsView.read(database, anew)
    this.mcp.read(database, this.#keys, anew)
  }

  /** Whether one head comes after another, or is it, in one history. */
  #follows(before: Head, after: Head): boolean {
    if (before.history !== after.history || before.version > after.version) return false
    return before.version < after.version || before.nonce === after.nonce
  }

  #settle(head: Head): void {
    this.#head = head
    this.#pageFrom = null
    if (this.#holding) return
    for (const [hash, position] of this.#denials) if (this.#reached(position)) this.#denials.delete(hash)
  }

  #reached({ history, version }: StatePosition): boolean {
    return this.#head?.history === history && this.#head.version >= version
  }

  #reopenReplaced(): void {
    if (this.#opened === null || this.#opened.inode === inodeOf(this.#file)) return
    this.forget()
  }

  #reading<Result>(read: (opened: Opened) => Result): Result {
    try {
      this.#opened ??= openReadOnly(this.#file)
      return read(this.#opened)
    } catch (error) {
      if (error instanceof Failure) throw error
      const code = error instanceof Error && 'code' in error ? String(error.code) : ''
      if (/^SQLITE_(CORRUPT|NOTADB)/.test(code)) this.#onDamaged(String(error))
      throw new Failure('dependency_unavailable', { cause: error })
    }
  }
}

const readLimited = (database: Database, since: number): string[] =>
  database
    .query<{ id: string }, [number]>('select id from accounts where version > ?')
    .all(since)
    .map(({ id }) => id)

/** OAuth access tokens that have changed since. */
const readDelegated = (database: Database, since: number): string[] =>
  database
    .query<{ hash: string }, [number]>('select hash from oauth_tokens where version > ?')
    .all(since)
    .map(({ hash }) => hash)

function readToken({ token, delegated }: Opened, hash: string): GovernedToken | null {
  const row = token.get(hash)
  if (row !== null) return compileToken(row)
  const delegatedRow = delegated.get(hash)
  return delegatedRow === null ? null : compileDelegated(delegatedRow)
}

/** By its real path: what leads to the file may lead to another one before SQLite opens the log beside it. */
function openReadOnly(named: string): Opened {
  const file = realpathSync(named)
  const inode = inodeOf(file)
  const database = new Database(file, { readonly: true })
  database.run('pragma busy_timeout = 50')
  const token = database.query(`select ${tokenColumns} from tokens where hash = ? and deleted = 0`)
  const delegated = database.query(`select ${delegatedColumns} from oauth_tokens where hash = ? and deleted = 0`)
  return { database, inode, token, delegated }
}

const inodeOf = (file: string): string => {
  try {
    const { dev, ino } = statSync(file)
    return `${dev}:${ino}`
  } catch (error) {
    throw new Failure('dependency_unavailable', { cause: error })
  }
}

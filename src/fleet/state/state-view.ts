/**
 * The state database as a gateway reads it (fleet/state/README.md): read-only, with bun:sqlite, from a file that
 * another process maintains.
 *
 * The catalog is in memory. A token's record is compiled on first use by one indexed read and kept in an LRU cache.
 * Each refresh reads what has changed since (`version > ?`), or drops the cache if that is much. Read transactions are
 * short, since an open one keeps the writer's log from being emptied. Everything in memory belongs to one version of
 * the state: a token that is read ahead of a refresh brings the rest up to its version in the same transaction. So a
 * token never comes without the limits and policies it names, and a policy never ends before the tokens that named it.
 * A file that was replaced (another inode) or has another history is read from the beginning.
 *
 * A read error is `dependency_unavailable`, never "no such token". Revocations ahead of the state are kept until it has
 * reached them.
 *
 * Longer than most: all that a gateway reads of the state is brought to one version in one place.
 */
import { Database } from 'bun:sqlite'
import { realpathSync, statSync } from 'node:fs'
import { LRUCache } from 'lru-cache'
import { Failure } from '../../failure.ts'
import { noPolicies, type PolicySet } from '../../policies/chain.ts'
import type { Head } from '../../store/propagation.ts'
import type { GovernedToken } from '../../tokens/governed-token.ts'
import { type LimitSet, noLimits } from '../../usage/limits.ts'
import { version as productVersion } from '../../version.ts'
import type { StatePosition } from '../outbox/record.ts'
import type { CatalogModel, GatewayRecord, Grant, ManagedSettings, StateView } from '../protocol/worker.ts'
import { type Catalog, CatalogView, type DataKeys, emptyCatalog } from './catalog-view.ts'
import { LimitsView } from './limits-view.ts'
import { readManagedSettings } from './managed-settings-rows.ts'
import { McpView } from './mcp-view.ts'
import { compileDelegated, delegatedColumns } from './oauth-token-row.ts'
import { PolicyView, readGrants } from './policy-view.ts'
import { compileToken, tokenColumns } from './token-row.ts'
import { WorkloadView } from './workload-view.ts'

const tokensInMemory = 100_000
/** With more changes than this since the last refresh, tokens are read again on use. */
const maxChanges = 2000

interface HeadRow extends Head {
  reads_from: string
  /** Deletions up to this version are no longer in the state. */
  deletions_kept_from: number
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
  readonly #tokens = new LRUCache<string, GovernedToken>({ maxSize: tokensInMemory, sizeCalculation: () => 1 })
  readonly #revocations = new Map<string, StatePosition>()
  #opened: Opened | null = null
  #head: Head | null = null
  /** The version at which the catalog, the limits and the policies were last read. */
  #readNonce: string | null = null
  #catalog: Catalog = emptyCatalog
  #limits: LimitSet = noLimits
  #policySet: PolicySet = noPolicies
  readonly #catalogs = new CatalogView()
  readonly #limitsView = new LimitsView()
  readonly #policies = new PolicyView()
  readonly #workloads = new WorkloadView()
  readonly mcp = new McpView()
  #keys: DataKeys = {}
  #tooNew: Failure | null = null
  #holding = false
  #gatewayId: string | null = null

  /** `onDamaged` is called with a reason if the file is no valid database. */
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

  /** Set while the state has a form that this version must not decide by. */
  get tooNew(): Failure | null {
    return this.#tooNew
  }

  get cached(): number {
    return this.#tokens.size
  }

  get revocations(): number {
    return this.#revocations.size
  }

  /** Providers whose credentials cannot be decrypted with the present keys. */
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
        this.#follow(opened.database)
        this.#tokens.set(hash, compiled)
        return compiled
      })(),
    )
  }

  isRevoked(hash: string): boolean {
    return this.#revocations.has(hash)
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
    return this.#policySet
  }

  grants(tokenId: string, digest: string, now: number): Grant[] {
    return this.#reading(({ database }) => readGrants(database, tokenId, digest, now))
  }

  managedSettings(): readonly ManagedSettings[] {
    return this.#reading(({ database }) => readManagedSettings(database))
  }

  get limits(): LimitSet {
    return this.#limits
  }

  get cacheClears(): ReadonlyMap<string, number> {
    return this.#catalog.cacheClears
  }

  get gateway(): GatewayRecord {
    return this.#catalog.gateway
  }

  get workloadIdentities() {
    return this.#workloads.identities
  }

  /** Whether the state lacks the token or has it as revoked: then its revocation entry is no longer needed. */
  refuses(hash: string): boolean {
    const token = this.token(hash)
    return token === null || token.revokedAt !== null
  }

  /** Refuses tokens until the state is at `position`. */
  revoke(position: StatePosition, hashes: readonly string[]): void {
    if (!this.#holding && this.#reached(position)) return
    for (const hash of hashes) {
      const known = this.#revocations.get(hash)
      if (known?.history !== position.history || known.version < position.version) this.#revocations.set(hash, position)
    }
  }

  /** Whether versions cannot be compared at present, because the state has a history that the primary has lost. */
  holdRevocations(holding: boolean): void {
    this.#holding = holding
  }

  /** Sets the gateway and its keys, and loads. */
  async load(gatewayId: string, keys: DataKeys): Promise<void> {
    this.#gatewayId = gatewayId
    this.#keys = keys
    this.#readNonce = null
    await this.refresh()
  }

  /** Reads what has changed. Throws `dependency_unavailable`, without a change, if the file cannot be read. */
  async refresh(): Promise<Head> {
    this.#reopenReplaced()
    const head = this.#reading(({ database }) => database.transaction(() => this.#follow(database))())
    this.#forgetRevocations()
    return head
  }

  close(): void {
    this.#opened?.database.close()
    this.#opened = null
  }

  /** Drops everything that was read, since none of it can be trusted. */
  forget(): void {
    this.close()
    this.#tokens.clear()
    this.#head = null
  }

  /** Call inside a read transaction: brings everything in memory to its version. */
  #follow(database: Database): Head {
    const { deletions_kept_from: keptFrom, reads_from: _, ...head } = this.#readHead(database)
    if (head.nonce === this.#readNonce && head.version === this.#head?.version) return head
    // The state keeps no deletions of older versions: they would be missed.
    const same = this.#head !== null && this.#follows(this.#head, head) && this.#head.version >= keptFrom
    const changed = same && this.#tokens.size > 0 ? readChanged(database, this.version) : null
    this.#readCatalog(database, head, !same)
    if (changed === null) this.#tokens.clear()
    else {
      for (const hash of changed.hashes) this.#tokens.delete(hash)
      this.#forgetTokensOf(changed.accounts)
    }
    this.#head = head
    this.#forgetRevocations()
    return head
  }

  /** A clone has the limits of its source, whose change does not touch the clone's own row. */
  #forgetTokensOf(accounts: readonly string[]): void {
    if (accounts.length === 0) return
    const changed = new Set(accounts)
    for (const [hash, token] of [...this.#tokens.entries()]) {
      if (token.accounts.some(({ id }) => changed.has(id))) this.#tokens.delete(hash)
    }
  }

  #readHead(database: Database): HeadRow {
    const row = database
      .query<HeadRow, []>(
        'select version, nonce, history, reads_from, deletions_kept_from from state_head where id = 1',
      )
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

  /** `anew`: what was read before is from another file or history, or misses deletions. */
  #readCatalog(database: Database, { nonce }: Pick<Head, 'nonce'>, anew: boolean): void {
    // Nothing of it counts until it is read completely: cached tokens keep what they came with.
    this.#readNonce = null
    this.#policies.read(database, anew)
    this.#workloads.read(database, anew)
    if (this.#gatewayId !== null) {
      const catalog = this.#catalogs.read(database, this.#gatewayId, this.#keys, anew)
      const limits = this.#limitsView.read(database, anew)
      this.mcp.read(database, this.#keys, anew)
      this.#catalog = catalog
      this.#limits = limits
    }
    this.#policySet = this.#policies.set
    this.#readNonce = nonce
  }

  /** Whether one head equals or follows another in the same history. */
  #follows(before: Head, after: Head): boolean {
    if (before.history !== after.history || before.version > after.version) return false
    return before.version < after.version || before.nonce === after.nonce
  }

  /** Drops the revocations that the state shows itself. */
  #forgetRevocations(): void {
    if (this.#holding) return
    for (const [hash, position] of this.#revocations) if (this.#reached(position)) this.#revocations.delete(hash)
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

/** The tokens and accounts that have changed since; null if there are many. */
function readChanged(database: Database, since: number): { hashes: string[]; accounts: string[] } | null {
  const changed = (columns: string, table: string) =>
    database
      .query<{ name: string }, [number, number]>(`select ${columns} as name from ${table} where version > ? limit ?`)
      .all(since, maxChanges)
      .map(({ name }) => name)
  const [tokens, delegated, accounts] = [
    changed('hash', 'tokens'),
    changed('hash', 'oauth_tokens'),
    changed('id', 'accounts'),
  ]
  if ([tokens, delegated, accounts].some(({ length }) => length === maxChanges)) return null
  return { hashes: [...tokens, ...delegated], accounts }
}

function readToken({ token, delegated }: Opened, hash: string): GovernedToken | null {
  const row = token.get(hash)
  if (row !== null) return compileToken(row)
  const delegatedRow = delegated.get(hash)
  return delegatedRow === null ? null : compileDelegated(delegatedRow)
}

/** The real path: a link may point to another file before SQLite opens the log beside it. */
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

/**
 * Whether the runtime token of a session is still valid. Looked up once for each state version, however many workers
 * acknowledge it at the same time, and not for a version whose ended tokens are known.
 */
import { Failure } from '../../failure.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Database } from '../../store/open.ts'
import { tokenStatus } from '../../tokens/governed-token.ts'

interface Ends {
  hash: string
  expiresAt: number | null
  rotatedAt: number | null
  revokedAt: number | null
}

interface TokenRow {
  hash: string
  expires_at: number | null
  rotated_at: number | null
  revoked_at: number | null
}

export class RuntimeTokens {
  readonly #state: Database
  readonly #clock: Clock
  readonly #known = new Map<string, { version: number; ends: Promise<Ends | null> }>()

  constructor(state: Database, clock: Clock) {
    this.#state = state
    this.#clock = clock
  }

  /** Whether the token is active in the state at `version`. */
  async active(tokenId: string, version: number): Promise<boolean> {
    let known = this.#known.get(tokenId)
    if (known === undefined || known.version < version) {
      known = this.#remember(tokenId, version, this.#read(tokenId))
    }
    const ends = await known.ends
    return ends !== null && tokenStatus(ends, this.#clock.now()) === 'active'
  }

  /** The change of this version only ended the tokens with these hashes. All others are unchanged. */
  passed(version: number, ended: readonly string[]): void {
    for (const [tokenId, known] of this.#known) {
      if (known.version !== version - 1) continue
      const ends = known.ends.then((before) =>
        before !== null && ended.includes(before.hash) ? this.#read(tokenId) : before,
      )
      this.#remember(tokenId, version, ends)
    }
  }

  /** The change of this version changed exactly these tokens. */
  changed(version: number, tokenIds: ReadonlySet<string>): void {
    for (const [tokenId, known] of this.#known) {
      if (known.version === version - 1 && !tokenIds.has(tokenId)) this.#remember(tokenId, version, known.ends)
    }
  }

  /** The state was replaced. */
  forget(): void {
    this.#known.clear()
  }

  #remember(tokenId: string, version: number, ends: Promise<Ends | null>) {
    const known = { version, ends }
    ends.catch(() => {
      if (this.#known.get(tokenId) === known) this.#known.delete(tokenId)
    })
    this.#known.set(tokenId, known)
    return known
  }

  async #read(tokenId: string): Promise<Ends | null> {
    const sql = 'select hash, expires_at, rotated_at, revoked_at from tokens where id = ? and deleted = 0'
    const [row] = await this.#state.read<TokenRow>(sql, [tokenId]).catch((error: unknown) => {
      throw new Failure('dependency_unavailable', { cause: error })
    })
    if (row === undefined) return null
    return { hash: row.hash, expiresAt: row.expires_at, rotatedAt: row.rotated_at, revokedAt: row.revoked_at }
  }
}

/**
 * Whether the runtime token behind a session still holds: looked up once for each version of the state, however many
 * lanes acknowledge that version at the same time.
 */
import { Failure } from '../failure.ts'
import type { Clock } from '../lib/clock.ts'
import type { Database } from '../store/open.ts'
import { tokenStatus } from '../tokens/governed.ts'

interface Ends {
  expiresAt: number | null
  rotatedAt: number | null
  revokedAt: number | null
}

interface TokenRow {
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

  /** Whether the token is active now, by the state at `version`. */
  async active(tokenId: string, version: number): Promise<boolean> {
    let known = this.#known.get(tokenId)
    if (known === undefined || known.version < version) {
      const looked = { version, ends: this.#read(tokenId) }
      looked.ends.catch(() => {
        if (this.#known.get(tokenId) === looked) this.#known.delete(tokenId)
      })
      this.#known.set(tokenId, looked)
      known = looked
    }
    const ends = await known.ends
    return ends !== null && tokenStatus(ends, this.#clock.now()) === 'active'
  }

  /** The state is another one. */
  forget(): void {
    this.#known.clear()
  }

  async #read(tokenId: string): Promise<Ends | null> {
    const sql = 'select expires_at, rotated_at, revoked_at from tokens where id = ? and deleted = 0'
    const [row] = await this.#state.read<TokenRow>(sql, [tokenId]).catch((error: unknown) => {
      throw new Failure('dependency_unavailable', { cause: error })
    })
    if (row === undefined) return null
    return { expiresAt: row.expires_at, rotatedAt: row.rotated_at, revokedAt: row.revoked_at }
  }
}

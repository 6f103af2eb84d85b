/** The policies of the state as a gateway reads them: compiled anew only where one of them has changed. */
import type { Database } from 'bun:sqlite'
import { compilePolicySet, noPolicies, type PolicySet } from '../policies/chain.ts'
import { openPolicy, policyColumns } from '../policies/stored-policy.ts'
import type { Grant } from './lane.ts'

export class PolicyView {
  #version: number | null = null
  #set: PolicySet = noPolicies

  get set(): PolicySet {
    return this.#set
  }

  /** To be called inside a read transaction. `anew`: the file or its history is another. */
  read(database: Database, anew: boolean): void {
    const [newest] = database
      .query<{ version: number | null }, []>('select max(version) as version from policies')
      .all()
    const version = newest?.version ?? null
    if (!anew && version === this.#version) return
    const rows = database.query(`select ${policyColumns} from policies where deleted = 0 order by position, id`).all()
    this.#set = compilePolicySet(rows.map(openPolicy))
    this.#version = version
  }
}

/** The leave that a reviewer gave one token to send one request; null where there is none that still holds. */
export const readGrant = (database: Database, tokenId: string, digest: string, now: number): Grant | null =>
  database
    .query<Grant, [string, string, number]>(
      `select id, expires_at as expiresAt from grants
        where token_id = ? and digest = ? and deleted = 0 and expires_at > ? order by expires_at limit 1`,
    )
    .get(tokenId, digest, now)

/** The policies of the state as a gateway reads them. Each is compiled again only when it has changed. */
import type { Database } from 'bun:sqlite'
import { compileMember, noPolicies, type PolicySet, policySetOf } from '../../policies/chain.ts'
import { openPolicy, policyColumns } from '../../policies/stored-policy.ts'
import type { Grant } from '../protocol/worker.ts'
import { CompiledRows } from './compiled-rows.ts'
import { accountsOfTokens } from './token-accounts.ts'

export class PolicyView {
  readonly #members = new CompiledRows('policies', policyColumns, (row, database) => {
    const stored = openPolicy(row)
    const { tokens } = stored.targets
    const targets =
      tokens === undefined ? stored.targets : { ...stored.targets, tokens: accountsOfTokens(database, tokens) }
    return stored.enabled ? compileMember({ ...stored, targets }) : null
  })
  #set: PolicySet = noPolicies

  get set(): PolicySet {
    return this.#set
  }

  /** Call inside a read transaction. `anew`: the file or its history is another one. */
  read(database: Database, anew: boolean): void {
    if (!this.#members.read(database, anew)) return
    this.#set = policySetOf(this.#members.values().filter((member) => member !== null))
  }
}

/** The valid permissions of reviewers for one token to send one request, the newest first: others may be used up. */
export const readGrants = (database: Database, tokenId: string, digest: string, now: number): Grant[] =>
  database
    .query<Grant, [string, string, number]>(
      `select id, expires_at as expiresAt from grants
        where token_id = ? and digest = ? and deleted = 0 and expires_at > ? order by version desc limit 10`,
    )
    .all(tokenId, digest, now)

/**
 * Tokens that the state knows better than the ledger, because the ledger alone was restored from an older copy.
 * Gateways accept them, but a token without a record can be neither seen nor revoked. So the ledger takes over what
 * the state has, each token with an event whose reason is `ledger.restored`:
 *
 *  `token.created`               the ledger lacked it. What only the ledger had is lost: its name, which now says so,
 *                                the prefix of its secret, metadata, its creator, what it was rotated or cloned from
 *  `token.revoked`, `.updated`   the ledger had it as it was before it was revoked, rotated or narrowed
 *
 * All tokens of both are compared, page by page, if something shows that the ledger is an older copy: another part
 * found it restored (usage/lease/allocator/restored-ledger.ts); the newest token has a state version that the ledger
 * never saw, with nothing pending; or it has fewer tokens than the state. Tokens are deleted from neither, and one that
 * is being made is pending in the ledger (events/README.md, A change and its event). So the ledger has as many tokens
 * as the state, or more if the state was restored, but never fewer.
 */
import { gt } from 'drizzle-orm'
import { rememberStateHead } from '../../events/change-statements.ts'
import { Failure } from '../../failure.ts'
import type { Head } from '../../store/propagation.ts'
import { query } from '../../store/query.ts'
import { tokens as stateTokens } from '../../store/schema/state/tokens.ts'
import { scopeDetails, tokenEvent } from '../../tokens/creation/minting.ts'
import { followState, insertToken, openStateToken } from '../../tokens/stored-token.ts'
import type { FleetOptions } from './options.ts'
import { restorer } from './tokens-to-revoke-again.ts'

const pageRows = 500

type Options = Pick<FleetOptions, 'state' | 'ledger' | 'clock' | 'newId' | 'recorder' | 'log'>

export class TokensMissingFromLedger {
  readonly #options: Options
  #suspected = false
  #made: Made | null = null
  /** How many tokens the ledger has that the state lacks; null until known. */
  #beyond: number | null = null

  constructor(options: Options) {
    this.#options = options
  }

  /** The ledger was found to be restored. */
  suspect(): void {
    this.#suspected = true
  }

  /** Takes over the tokens that the ledger lacks. Call every few seconds. Resolves to their number. */
  async takeOverMissing(): Promise<number> {
    const { ledger, log } = this.#options
    // The state first: what it has is then in the ledger, or pending there, when that is read.
    const made = await this.#readMade()
    const recorded = await readRecorded(ledger)
    if (!this.#suspected && this.#isSound(made, recorded)) {
      this.#beyond ??= 0
      return 0
    }
    // A restore found from here on needs another run: the compared pages may be older.
    this.#suspected = false
    const taken = await takeOver(this.#options).catch((error: unknown) => {
      this.#suspected = true
      throw error
    })
    if (taken > 0) log.error({ tokens: taken }, 'The ledger was restored: tokens were taken over from the state')
    await ledger.write([rememberStateHead(made)])
    const after = await this.#readMade()
    this.#beyond = Math.max(0, (await readRecorded(ledger)).tokens - after.tokens)
    return taken
  }

  #isSound(made: Made, { tokens, pending, version }: Recorded): boolean {
    if (pending === 0 && made.newest > version) return false
    return this.#beyond === null ? tokens === made.tokens : tokens + pending - made.tokens >= this.#beyond
  }

  /** Counting reads a whole index, so it is done only after a change. */
  async #readMade(): Promise<Made> {
    const { state } = this.#options
    const [head] = await state.read<{ nonce: string }>('select nonce from state_head')
    if (this.#made === null || head?.nonce !== this.#made.nonce) {
      const [made] = await state.read<Made>(
        `select version, nonce, history, (select count(*) from tokens) as tokens,
          coalesce((select max(version) from tokens), 0) as newest from state_head`,
      )
      if (made === undefined) throw new Error('The state database has no state_head row: it was not migrated')
      this.#made = made
    }
    return this.#made
  }
}

/** The state's head, its number of tokens, and the version that last changed one. */
interface Made extends Head {
  tokens: number
  newest: number
}

interface Recorded {
  tokens: number
  pending: number
  /** The newest state version that the ledger saw. */
  version: number
}

async function readRecorded(ledger: Options['ledger']): Promise<Recorded> {
  const [recorded] = await ledger.read<Recorded>(
    `select (select coalesce(sum(count), 0) from token_counts) as tokens,
      (select count(*) from pending_changes) as pending, coalesce((select version from known_state_head), 0) as version`,
  )
  return recorded ?? { tokens: 0, pending: 0, version: 0 }
}

interface Behind {
  id: string
  lacks: number
  revokedAt: number | null
}

/** A pending change of a token will be written as intended. */
const isPending = (id: string): string => `exists (select 1 from pending_changes where instr(statements, ${id}) > 0)`

async function takeOver(options: Options): Promise<number> {
  const { state, ledger } = options
  let taken = 0
  for (let after = ''; ; ) {
    const page = await query(state)
      .select()
      .from(stateTokens)
      .where(gt(stateTokens.id, after))
      .orderBy(stateTokens.id)
      .limit(pageRows)
    const tokens = new Map(page.map((row) => [row.id, row]))
    const behind = await ledger.read<Behind>(
      `select value ->> 'id' as id, t.id is null as lacks, t.revoked_at as revokedAt
        from json_each(?) left join tokens t on t.id = value ->> 'id'
        where coalesce(t.version, -1) < value ->> 'version' and not ${isPending("value ->> 'id'")}`,
      [JSON.stringify(page.map(({ id, version }) => ({ id, version })))],
    )
    for (const found of behind) {
      const row = tokens.get(found.id)
      if (row !== undefined && (await takeOverOne(options, found, row))) taken += 1
    }
    const last = page.at(-1)
    if (last === undefined || page.length < pageRows) return taken
    after = last.id
  }
}

/** False if another control plane was faster. */
async function takeOverOne(
  options: Options,
  { id, lacks, revokedAt }: Behind,
  row: typeof stateTokens.$inferSelect,
): Promise<boolean> {
  const { token, only } = openStateToken(row)
  const changed = token.revokedAt !== null && revokedAt === null ? 'token.revoked' : 'token.updated'
  const event = tokenEvent(
    {
      type: lacks === 1 ? 'token.created' : changed,
      reason: 'ledger.restored',
      actor: { principal: restorer, requestId: 'restore' },
      token,
      eventTeamId: only.eventTeamId,
      details: { token_id: id, ...(lacks === 1 && { name: token.name }), ...scopeDetails(token) },
    },
    options,
  )
  const stillBehind = {
    sql: `insert into guards (holds) select 0 where ${isPending('?1')}
      or exists (select 1 from tokens where id = ?1 and version >= ?2)`,
    args: [id, token.version],
  }
  const rows = lacks === 1 ? insertToken(token, only, token.version).ledger : [followState(token)]
  try {
    await options.recorder().change({ event, state: [], ledger: [stillBehind, ...rows] })
    return true
  } catch (error) {
    if (error instanceof Failure && error.code === 'conflict') return false
    throw error
  }
}

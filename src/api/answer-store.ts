/**
 * `Idempotency-Key` (handbook/reference/http.md): the first answer of a key is kept for 24 hours and given again. A key
 * is claimed by one statement before the handler runs, so of two simultaneous requests one runs and one gets 409.
 *
 * Only an answer of success is kept: a request that was refused has changed nothing and may run again; one that failed
 * on our side may have been done, and its key stays taken for a minute. An answer with a
 * secret is not kept at all, only the id of what it made. A claim whose process died is taken over after a minute by
 * the same request; what the dead one did before it died may then be done twice, which a key cannot prevent across
 * two databases.
 */
import { Failure } from '../failure.ts'
import type { Clock } from '../lib/clock.ts'
import type { Database } from '../store/open.ts'

export interface IdempotentRequest {
  /** Who asks: keys of different principals never meet. */
  principal: string
  key: string
  /** `POST /v1/tokens/{id}/rotate`. */
  route: string
  /** SHA-256 over address and body. */
  bodyHash: string
}

export interface KeptAnswer {
  status: number
  headers: Record<string, string>
  /** The JSON text of the reply. */
  body: string
}

export interface Claim {
  /** Keeps the answer; with `secretOf` only that id. */
  keep(answer: KeptAnswer, secretOf?: string): Promise<void>
  /** Frees the key: the request failed and may be sent again. */
  release(): Promise<void>
}

export interface AnswerStore {
  /**
   * Claims the key, or returns its stored answer. Throws `idempotency_key_reused` for another body or route,
   * `idempotency_in_flight` while the first call runs, `idempotency_key_used` if the first answer held a secret.
   */
  begin(request: IdempotentRequest): Promise<{ claim: Claim } | { kept: KeptAnswer }>
}

const keptForMilliseconds = 24 * 60 * 60 * 1000
const abandonedAfterMilliseconds = 60_000
const sweepBatch = 500

interface Row {
  route: string
  body_hash: string
  status: number | null
  answer: string | null
  secret_resource_id: string | null
}

export interface AnswerStoreOptions {
  ledger: Database
  clock: Clock
  /**
   * Digests of bodies are keyed, because some bodies hold a password: a copy of the ledger does not help to guess it.
   */
  key: Uint8Array
}

export function createAnswerStore({ ledger, clock, key }: AnswerStoreOptions): AnswerStore {
  let sweepAt = clock.monotonic()
  const sweep = async () => {
    if (clock.monotonic() < sweepAt) return
    sweepAt = clock.monotonic() + 60_000
    await ledger.write([
      {
        sql: `delete from idempotency_keys where rowid in
          (select rowid from idempotency_keys where created_at <= ? limit ${sweepBatch})`,
        args: [clock.now() - keptForMilliseconds],
      },
    ])
  }
  const keyed = (request: IdempotentRequest): IdempotentRequest => ({
    ...request,
    bodyHash: new Bun.CryptoHasher('sha256', key).update(`idempotency\0${request.bodyHash}`).digest('hex'),
  })
  return {
    async begin(unkeyed) {
      const request = keyed(unkeyed)
      await sweep()
      const at = clock.now()
      const claimed = await ledger.writeAndRead([{ sql: claimKey, args: claimArguments(request, at) }])
      if (claimed.length === 1) return { claim: claimOf(ledger, request, at) }
      const [row] = await ledger.read<Row>(
        `select route, body_hash, status, answer, secret_resource_id from idempotency_keys
          where principal = ? and idempotency_key = ?`,
        [request.principal, request.key],
      )
      return { kept: keptAnswer(request, row) }
    },
  }
}

const claimKey = `insert into idempotency_keys (principal, idempotency_key, route, body_hash, created_at)
  values (?, ?, ?, ?, ?)
  on conflict (principal, idempotency_key) do update set route = excluded.route, body_hash = excluded.body_hash,
    status = null, answer = null, secret_resource_id = null, created_at = excluded.created_at
  where idempotency_keys.created_at <= ?
    or (idempotency_keys.status is null and idempotency_keys.created_at <= ?
      and idempotency_keys.route = excluded.route and idempotency_keys.body_hash = excluded.body_hash)
  returning 1`

const claimArguments = ({ principal, key, route, bodyHash }: IdempotentRequest, at: number) => [
  principal,
  key,
  route,
  bodyHash,
  at,
  at - keptForMilliseconds,
  at - abandonedAfterMilliseconds,
]

function keptAnswer(request: IdempotentRequest, row: Row | undefined): KeptAnswer {
  // Gone between claim and look: the first was just released.
  if (row === undefined) throw new Failure('idempotency_in_flight', { retryAfter: 1 })
  if (row.route !== request.route || row.body_hash !== request.bodyHash) throw new Failure('idempotency_key_reused')
  if (row.status === null) throw new Failure('idempotency_in_flight', { retryAfter: 1 })
  if (row.answer === null) {
    throw new Failure('idempotency_key_used', { extra: { id: row.secret_resource_id || null } })
  }
  const { headers, body }: Pick<KeptAnswer, 'headers' | 'body'> = JSON.parse(row.answer)
  return { status: row.status, headers, body }
}

/** Both writes name the instant of the claim, so that a claim that was taken over no longer touches the row. */
function claimOf(ledger: Database, { principal, key }: IdempotentRequest, at: number): Claim {
  return {
    async keep({ status, headers, body }, secretOf) {
      const answer = secretOf === undefined ? JSON.stringify({ headers, body }) : null
      await ledger.write([
        {
          sql: `update idempotency_keys set status = ?, answer = ?, secret_resource_id = ?
            where principal = ? and idempotency_key = ? and created_at = ?`,
          args: [status, answer, secretOf ?? null, principal, key, at],
        },
      ])
    },
    async release() {
      await ledger.write([
        {
          sql: `delete from idempotency_keys
            where principal = ? and idempotency_key = ? and created_at = ? and status is null`,
          args: [principal, key, at],
        },
      ])
    },
  }
}

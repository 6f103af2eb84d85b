/**
 * Tells the connected workers of changes (fleet/README.md rule R4). A change of this control plane, or one that a peer
 * signalled, is sent at once. If versions were skipped because a signal was lost or out of order, the revocations
 * between them are read from the state: every token that has changed since. So every control plane that can read the
 * primary finds all revocations within the second in which it reads the head.
 *
 * `#broadcastHead` is the version up to which everything has been sent. A new worker gets the head in its handshake and
 * catches up from its copy of the state.
 */
import type { Log } from '../../lib/log/log.ts'
import type { Database } from '../../store/open.ts'
import type { Head } from '../../store/propagation.ts'
import type { WorkerRegistry } from './worker-registry.ts'

/** With more changed tokens than this, a worker that reads its copy of the state is as fast. */
const maxRevocations = 5000
/** The oldest age at which a change still ends running requests. */
const endedRequestsReadForMs = 60_000

/** The changed tokens after a version, from each table whose hashes gateways check. */
const changedTokens = `select hash, version from tokens where version > ?1
  union all select hash, version from oauth_tokens where version > ?1`

export interface ChangeFeedOptions {
  state: Database
  ledger: Database
  registry: WorkerRegistry
  log: Log
  /** Called whenever a head is sent to the workers. `only`: its change did nothing but revoke these tokens. */
  onBroadcast(head: Head, revoked: readonly string[], only: boolean): void
}

interface Changed extends Head {
  hash: string | null
}

export class ChangeFeed {
  readonly #options: ChangeFeedOptions
  #broadcastHead: Head | null = null
  #catchingUp: Promise<void> | null = null
  #again = false

  constructor(options: ChangeFeedOptions) {
    this.#options = options
  }

  /** A change was committed, here or at a peer. Never waits. */
  announce(head: Head, revoked: readonly string[], endRequests: readonly string[], only_revocations: boolean): void {
    this.#push(head, head.version - 1, { revoked, end_requests: endRequests, only_revocations })
    const broadcast = this.#broadcastHead
    if (broadcast === null || broadcast.history !== head.history || broadcast.version >= head.version) return
    if (broadcast.version === head.version - 1) this.#broadcastHead = head
    else void this.catchUp()
  }

  /** The primary is at this head: reads and sends what workers have not been sent. */
  async catchUpTo(head: Head): Promise<void> {
    if (this.#broadcastHead === null) this.#broadcastHead = head
    if (this.#broadcastHead.history === head.history && this.#broadcastHead.version < head.version) await this.catchUp()
  }

  /** The primary was restored or replaced: earlier broadcasts belong to another history. */
  restart(head: Head): void {
    this.#broadcastHead = head
  }

  /** Reads and sends the changes between the last broadcast and the primary's head. */
  async catchUp(): Promise<void> {
    if (this.#catchingUp !== null) {
      this.#again = true
      return await this.#catchingUp
    }
    this.#catchingUp = this.#catchUp().finally(() => {
      this.#catchingUp = null
    })
    await this.#catchingUp
  }

  async #catchUp(): Promise<void> {
    try {
      do {
        this.#again = false
        await this.#broadcastMissing()
      } while (this.#again)
    } catch (error) {
      // The next read of the head retries. Until then heartbeats show workers that they are behind.
      this.#options.log.warn({ error: String(error) }, 'Changes of the state could not be read')
    }
  }

  async #broadcastMissing(): Promise<void> {
    const since = this.#broadcastHead
    if (since === null) return
    const rows = await this.#options.state.read<Changed>(
      `select h.version, h.nonce, h.history, t.hash from state_head h left join (
          select hash from (${changedTokens}) order by version limit ?2) t on true where h.id = 1`,
      [since.version, maxRevocations + 1],
    )
    const [head] = rows
    if (head === undefined || head.history !== since.history || head.version <= since.version) return
    const { version, nonce, history } = head
    const hashes = rows.flatMap(({ hash }) => (hash === null ? [] : [hash]))
    const all = hashes.length <= maxRevocations
    const endRequests = await this.#requestsEndedSince(since.version)
    // If not all revocations are sent, workers acknowledge only when their state has reached this version.
    this.#push({ version, nonce, history }, all ? since.version : version, {
      revoked: all ? hashes : [],
      end_requests: endRequests,
      only_revocations: false,
    })
    if (this.#broadcastHead === since || (this.#broadcastHead?.version ?? 0) < version)
      this.#broadcastHead = { version, nonce, history }
  }

  async #requestsEndedSince(version: number): Promise<string[]> {
    const { ledger, state } = this.#options
    const recent = await ledger.read<{ event_id: string; hashes: string }>(
      `select event_id, hashes from ended_requests where at > (select max(at) from ended_requests) - ?`,
      [endedRequestsReadForMs],
    )
    if (recent.length === 0) return []
    const changes = await state.read<{ event_id: string }>(
      'select event_id from change_log where version > ? and event_id in (select value from json_each(?))',
      [version, JSON.stringify(recent.map(({ event_id }) => event_id))],
    )
    const made = new Set(changes.map(({ event_id }) => event_id))
    return recent.filter(({ event_id }) => made.has(event_id)).flatMap(({ hashes }): string[] => JSON.parse(hashes))
  }

  #push(
    head: Head,
    since: number,
    {
      revoked,
      end_requests: endRequests,
      only_revocations,
    }: { revoked: readonly string[]; end_requests: readonly string[]; only_revocations: boolean },
  ): void {
    const change = {
      kind: 'change' as const,
      head,
      since,
      revoked: [...revoked],
      end_requests: [...endRequests],
      only_revocations,
    }
    for (const { stream } of this.#options.registry.all()) stream?.send(change)
    this.#options.onBroadcast(head, revoked, only_revocations)
  }
}

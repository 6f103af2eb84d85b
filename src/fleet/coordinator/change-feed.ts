/**
 * What workers connected here are told of changes (fleet/README.md rule R4). A change of this control plane, or of a
 * peer that has signalled it, goes out at once. Where versions were passed over, since a signal was lost or came out of
 * order, the denials between are read from the state itself: every token that has changed since. So whoever has the
 * primary finds all denials, within the second in which each control plane reads the head.
 *
 * `told` is the version up to which everything has been said. A worker that connects is told the head by its hello and
 * catches up from its copy of the state.
 */
import type { Log } from '../../lib/log/log.ts'
import type { Database } from '../../store/open.ts'
import type { Head } from '../../store/propagation.ts'
import type { WorkerRegistry } from './worker-registry.ts'

/** With more changed tokens than this a worker that follows its copy of the state is as fast. */
const maxRevocations = 5000
/** How old a change may be whose running requests are still ended. */
const cutsForMs = 60_000

/** What may be denied and has changed after a version: each table of hashes that gateways admit by. */
const changedTokens = `select hash, version from tokens where version > ?1
  union all select hash, version from oauth_tokens where version > ?1`

export interface ChangeFeedOptions {
  state: Database
  ledger: Database
  registry: WorkerRegistry
  log: Log
  /** Told whenever workers are told of a head. `only`: the change that made it has done nothing but deny these. */
  onBroadcast(head: Head, deny: readonly string[], only: boolean): void
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
  announce(head: Head, deny: readonly string[], cut: readonly string[], only_revocations: boolean): void {
    this.#push(head, head.version - 1, { deny, cut, only_revocations })
    const broadcast = this.#broadcastHead
    if (broadcast === null || broadcast.history !== head.history || broadcast.version >= head.version) return
    if (broadcast.version === head.version - 1) this.#broadcastHead = head
    else void this.catchUp()
  }

  /** This is what the primary has: what workers were not told of it is read and said. */
  async catchUpTo(head: Head): Promise<void> {
    if (this.#broadcastHead === null) this.#broadcastHead = head
    if (this.#broadcastHead.history === head.history && this.#broadcastHead.version < head.version) await this.catchUp()
  }

  /** The primary was restored or replaced: what was told is of another history. */
  restart(head: Head): void {
    this.#broadcastHead = head
  }

  /** Reads and says what is between what was told and what there is. */
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
      // The next look at the head tries again; until then workers are told by their heartbeats that they are behind.
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
    const cut = await this.#cutsSince(since.version)
    // Without all denials said, workers acknowledge only once their copy of the state is at this version.
    this.#push({ version, nonce, history }, all ? since.version : version, {
      deny: all ? hashes : [],
      cut,
      only_revocations: false,
    })
    if (this.#broadcastHead === since || (this.#broadcastHead?.version ?? 0) < version)
      this.#broadcastHead = { version, nonce, history }
  }

  async #cutsSince(version: number): Promise<string[]> {
    const { ledger, state } = this.#options
    const recent = await ledger.read<{ event_id: string; hashes: string }>(
      `select event_id, hashes from cuts where at > (select max(at) from cuts) - ?`,
      [cutsForMs],
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
    { deny, cut, only_revocations }: { deny: readonly string[]; cut: readonly string[]; only_revocations: boolean },
  ): void {
    const change = { kind: 'change' as const, head, since, deny: [...deny], cut: [...cut], only_revocations }
    for (const { stream } of this.#options.registry.all()) stream?.send(change)
    this.#options.onBroadcast(head, deny, only_revocations)
  }
}

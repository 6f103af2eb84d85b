/**
 * Indexes of tools for sessions. The tools of a session are listed at its first search, and again when a list changed or
 * after a while. Sessions that see the same tools share one index.
 */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../../lib/clock.ts'
import { type Tool, ToolIndex } from './tool-index.ts'

/** More tools than that are not found: nobody could approve them. */
export const mostTools = 5000
const mostIndexes = 32
/** For servers that do not tell that their lists changed. */
const freshMilliseconds = 60_000

/** A session, as far as its lists go. */
interface Session {
  /** Grows with each change of a list that it was told of. */
  readonly listChanges: number
}

interface Known {
  readonly changes: number
  readonly servers: string
  readonly until: number
  readonly key: Promise<string>
}

export class ToolSearch {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #indexes = new LRUCache<string, ToolIndex>({ max: mostIndexes })
  readonly #known = new WeakMap<Session, Known>()

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  /** The index of a session's tools. `servers` names those that are searched; `list` lists their tools. */
  async indexFor(
    session: Session,
    servers: readonly string[],
    list: () => Promise<readonly Tool[]>,
  ): Promise<ToolIndex> {
    const known = this.#known.get(session)
    const named = servers.join(' ')
    const isFresh =
      known !== undefined &&
      known.changes === session.listChanges &&
      known.servers === named &&
      this.#clock.monotonic() < known.until
    if (isFresh) {
      const index = this.#indexes.get(await known.key)
      if (index !== undefined) return index
    }
    // A change while they are listed makes the next search list them again.
    const changes = session.listChanges
    const indexing = list().then((tools) => this.#indexed(tools))
    const key = indexing.then(([found]) => found)
    this.#known.set(session, { changes, servers: named, until: this.#clock.monotonic() + freshMilliseconds, key })
    key.catch(() => this.#known.delete(session))
    return (await indexing)[1]
  }

  #indexed(tools: readonly Tool[]): [key: string, index: ToolIndex] {
    const key = createHash('sha256').update(JSON.stringify(tools)).digest('base64')
    const known = this.#indexes.get(key)
    if (known !== undefined) return [key, known]
    const index = new ToolIndex(tools)
    this.#indexes.set(key, index)
    return [key, index]
  }
}

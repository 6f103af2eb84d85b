/**
 * Indexes of tools for sessions. The tools of a session are listed at its first search, and again when a list changed or
 * after a while. Sessions that see the same tools share one index.
 */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../../lib/clock.ts'
import { type Tool, ToolIndex } from './tool-index.ts'

/** More tools of a caller are not found. */
export const mostTools = 2000
/** UTF-16 units of the definitions of all indexes; an index takes some six times that. */
const mostUnits = 16 * 1024 * 1024
/** For servers that do not tell that their lists changed. */
const freshMilliseconds = 300_000

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
  readonly #indexes = new LRUCache<string, ToolIndex>({ maxSize: mostUnits })
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
      // Who listed them may have left; then they are listed for this caller.
      const key = await known.key.catch(() => null)
      const index = key === null ? undefined : this.#indexes.get(key)
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

  async #indexed(tools: readonly Tool[]): Promise<[key: string, index: ToolIndex]> {
    const text = JSON.stringify(tools)
    const key = createHash('sha256').update(text).digest('base64')
    const known = this.#indexes.get(key)
    if (known !== undefined) return [key, known]
    const index = await ToolIndex.of(tools)
    this.#indexes.set(key, index, { size: text.length })
    return [key, index]
  }
}

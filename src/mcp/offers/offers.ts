/**
 * Decides which of a server's offers a gateway shows, and reports the others to the control plane (definition.ts,
 * take-offers.ts).
 *
 * - An offer is shown if the state has approved its definition. During first use (offer-report.ts) an offer without any
 *   approved definition is shown as it was first seen here, and no other definition of its name. So two workers that
 *   saw different definitions soon show the one that was reported first, and nothing disappears while its approval is
 *   pending.
 * - An offer that callers could not read (offer-shape.ts) is never shown.
 * - Each unapproved definition is reported once, in batches. A failed report is repeated after a while, unless it was
 *   refused as invalid, because it would block all others for ever.
 */
import { LRUCache } from 'lru-cache'
import { Failure } from '../../failure.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log/log.ts'
import type { Json, OfferKind } from '../connection.ts'
import { isJson } from '../protocol.ts'
import type { McpSource, StoredMcpServer } from '../servers/server-source.ts'
import { type Definition, definitionOf, offerId } from './definition.ts'
import { firstUseMilliseconds, type OfferReport, reportBytes, reportLimit } from './offer-report.ts'
import { shapeFault } from './offer-shape.ts'

const toldInMemory = 20_000
const mostQueued = 2000
/**
 * The limit of remembered offers of one kind during first use; the control plane keeps no more of all kinds together.
 */
const mostFirstSeen = 5000
const lingerMilliseconds = 50
const restMilliseconds = 1000
/** During first use, because everything must be reported within that time. */
const firstRestMilliseconds = 100
const retryMilliseconds = 5000

export interface OffersOptions {
  source: Pick<McpSource, 'report'>
  clock: Clock
  log: Log
}

/** The offers of one kind that were seen during first use. */
interface FirstUse {
  /** Monotonic milliseconds. */
  ends: number
  digests: Map<string, string>
}

interface CheckedOffer {
  kind: OfferKind
  definition: Definition | null
  /** Why it is never shown. */
  misfit: string | null
}

type Told = Pick<StoredMcpServer, 'id' | 'name'>

export class Offers {
  readonly #options: OffersOptions
  readonly #definitions = new WeakMap<object, CheckedOffer>()
  readonly #firstUses = new LRUCache<string, FirstUse>({ max: 1000 })
  readonly #told = new LRUCache<string, true>({ max: toldInMemory })
  readonly #queue = new Map<string, OfferReport>()
  #queued = 0
  #timer: Timer | null = null
  /** When the last first use that began here ends; monotonic milliseconds. */
  #firstUsedUntil = Number.NEGATIVE_INFINITY

  constructor(options: OffersOptions) {
    this.#options = options
  }

  approved<Offer extends object>(server: StoredMcpServer, kind: OfferKind, offers: readonly Offer[]): Offer[] {
    const firstUse = this.#firstUse(server, kind)
    const shown: Offer[] = []
    for (const offer of offers) {
      const { definition, misfit } = this.#definitionOf(kind, offer)
      if (definition === null) {
        this.#options.log.debug({ mcp_server: server.name, kind }, 'An offer is too large, too deep or has no name')
      } else if (misfit !== null) this.#tell(server, kind, definition)
      else if (server.approved.has(definition.digest)) shown.push(offer)
      else {
        if (firstUse !== null && this.#isFirst(server, firstUse, definition)) shown.push(offer)
        this.#tell(server, kind, definition)
      }
    }
    if (offers.length === 0 && firstUse !== null && !server.baselines.has(kind)) this.#tell(server, kind, null)
    return shown
  }

  /** Stops reporting. */
  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#queue.clear()
  }

  /** Caches digests of offers, because readers keep their lists. */
  #definitionOf(kind: OfferKind, offer: object): CheckedOffer {
    const known = this.#definitions.get(offer)
    if (known?.kind === kind) return known
    const definition = isJson(offer) ? definitionOf(kind, offer satisfies Json) : null
    const judged = { kind, definition, misfit: definition === null ? null : shapeFault(kind, offer) }
    this.#definitions.set(offer, judged)
    return judged
  }

  #firstUse({ id, approval, baselines }: StoredMcpServer, kind: OfferKind): FirstUse | null {
    if (approval !== 'first_use') return null
    const { clock } = this.#options
    const key = `${id}/${kind}`
    const known = this.#firstUses.get(key)
    if (known !== undefined) return known
    const told = baselines.get(kind)
    // Another gateway saw it first, so first use lasts here for the rest of that time.
    const left = told === undefined ? firstUseMilliseconds : told + firstUseMilliseconds - clock.now()
    if (left <= 0) return null
    const lasts = Math.min(left, firstUseMilliseconds)
    const firstUse = { ends: clock.monotonic() + lasts, digests: new Map<string, string>() }
    this.#firstUses.set(key, firstUse)
    this.#firstUsedUntil = firstUse.ends
    return firstUse
  }

  #isFirst(server: StoredMcpServer, { ends, digests }: FirstUse, { kind, name, digest }: Definition): boolean {
    if (this.#options.clock.monotonic() >= ends) {
      digests.clear()
      return false
    }
    if (server.known.has(offerId(server.id, kind, name))) return false
    if (!digests.has(name) && digests.size < mostFirstSeen) digests.set(name, digest)
    return digests.get(name) === digest
  }

  /** `definition` null: the server offers nothing of the kind. */
  #tell({ id, name }: Told, kind: OfferKind, definition: Definition | null): void {
    const mark = `${id} ${kind} ${definition?.digest ?? ''}`
    if (this.#told.has(mark) || this.#queued >= mostQueued) return
    this.#told.set(mark, true)
    const key = `${id}/${kind}`
    const report = this.#queue.get(key) ?? { server_id: id, kind, definitions: [] }
    if (definition !== null) {
      report.definitions.push(definition.text)
      this.#queued += 1
    }
    if (!this.#queue.has(key)) this.#options.log.info({ mcp_server: name, kind }, 'An MCP server offers something new')
    this.#queue.set(key, report)
    this.#later(lingerMilliseconds)
  }

  #later(milliseconds: number): void {
    this.#timer ??= setTimeout(() => {
      void this.#flush()
    }, milliseconds)
    this.#timer.unref()
  }

  async #flush(): Promise<void> {
    let rest = this.#options.clock.monotonic() < this.#firstUsedUntil ? firstRestMilliseconds : restMilliseconds
    for (const [key, { server_id, kind, definitions }] of this.#queue) {
      const some = batchOf(definitions)
      try {
        await this.#options.source.report({ server_id, kind, definitions: some })
      } catch (error) {
        this.#options.log.warn({ error: String(error) }, 'The offers of an MCP server could not be reported')
        if (!isRefused(error)) {
          rest = retryMilliseconds
          continue
        }
      }
      this.#queued -= some.length
      definitions.splice(0, some.length)
      if (definitions.length === 0) this.#queue.delete(key)
    }
    this.#timer = null
    if (this.#queue.size > 0) this.#later(rest)
  }
}

const isRefused = (error: unknown): boolean => error instanceof Failure && [400, 413, 422].includes(error.status)

/** As many as one report may hold, at least one. */
function batchOf(definitions: readonly string[]): string[] {
  let bytes = 0
  const end = definitions.findIndex((text, index) => {
    bytes += Buffer.byteLength(text)
    return index > 0 && (index >= reportLimit || bytes > reportBytes)
  })
  return definitions.slice(0, end < 0 ? reportLimit : end)
}

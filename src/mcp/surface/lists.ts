/**
 * Merges the lists of all servers (tools, prompts, resources, templates), a page at a time.
 *
 * 1. Servers come in catalog order, each with its own pages in order. A cursor holds the server, the server's own
 *    cursor, and the number of pages taken.
 * 2. Only approved offers that this caller may use are listed.
 * 3. A server that is unreachable or breaks the protocol is left out and logged; the rest of the list stands.
 * 4. All servers are asked at once, and none is awaited longer than `longestMilliseconds`. A server that is late is left
 *    out, and hardly waited for again before it has answered. The caller is then told to list again (`late-servers.ts`).
 * 5. A server whose pages never end is left after a number of pages, or at a cursor that it gave before.
 * 6. Of an offer that appears twice on a merged page the first is listed.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { Failure } from '../../failure.ts'
import { rpcCodes } from '../../lib/json/json-rpc.ts'
import type { Json, McpConnection, McpServerRecord, McpServers, OfferKind } from '../connection.ts'
import { type MarkedArgument, markedArguments } from '../header-values.ts'
import { McpError } from '../mcp-error.ts'
import { isJson } from '../protocol.ts'
import type { LateServers } from './late-servers.ts'
import { publishedOffer } from './names.ts'
import type { McpSession } from './session.ts'
import type { ShownNames } from './shown-offers.ts'

/** A page ends with the server page that reaches this length. */
const enough = 500
const mostPages = 100
const longestMilliseconds = 5000
/** How long a list waits for a server that was late before. */
const graceMilliseconds = 200

export interface ListKind {
  readonly method: string
  readonly kind: OfferKind
  /** The member of the result that holds the offers. */
  readonly member: string
  /** The member of an offer that identifies it. */
  readonly named: 'name' | 'uri' | 'uriTemplate'
  /** The capability of a server that has such a list. */
  readonly capability: string
}

export const listKinds: ReadonlyMap<string, ListKind> = new Map(
  (
    [
      { method: 'tools/list', kind: 'tool', member: 'tools', named: 'name', capability: 'tools' },
      { method: 'prompts/list', kind: 'prompt', member: 'prompts', named: 'name', capability: 'prompts' },
      { method: 'resources/list', kind: 'resource', member: 'resources', named: 'uri', capability: 'resources' },
      {
        method: 'resources/templates/list',
        kind: 'resource_template',
        member: 'resourceTemplates',
        named: 'uriTemplate',
        capability: 'resources',
      },
    ] as const
  ).map((list) => [list.method, list]),
)

type Named = Json & { name: string }

export interface Listing {
  readonly list: ListKind
  readonly session: McpSession
  readonly servers: Pick<McpServers, 'list' | 'approved'>
  readonly cursor: unknown
  /** Signs cursors. All gateways of an installation share it, so that each can go on with a list. */
  readonly cursorKey: Uint8Array
  readonly signal: AbortSignal
  readonly late: LateServers
  /** Overrides `longestMilliseconds`. */
  readonly timeoutMilliseconds?: number
  /** Whether this caller may use an offer. */
  mayUse(server: McpServerRecord, offer: Named): boolean
  /** Called for a server whose part is missing. */
  missing(server: McpServerRecord, error: unknown): void
  /** Called for a server that lists something twice or repeats a cursor. */
  repeats(server: McpServerRecord): void
}

interface Position {
  server: McpServerRecord
  cursor: string | undefined
  pages: number
}

/** One page of the merged list. Throws an McpError for an invalid cursor. */
export async function listPage(listing: Listing): Promise<Json> {
  const late = new AbortController()
  const timer = setTimeout(
    () => late.abort(new Failure('mcp.server_timeout')),
    listing.timeoutMilliseconds ?? longestMilliseconds,
  )
  const leave = () => late.abort(listing.signal.reason)
  listing.signal.addEventListener('abort', leave, { once: true })
  if (listing.signal.aborted) leave()
  try {
    return await listUntil(listing, late.signal)
  } finally {
    clearTimeout(timer)
    listing.signal.removeEventListener('abort', leave)
  }
}

async function listUntil(listing: Listing, signal: AbortSignal): Promise<Json> {
  const { list, servers, cursor } = listing
  const records = servers.list()
  let position = cursor === undefined ? first(records) : positionOf(cursor, listing, records)
  // Asking one after the other would add up their delays.
  const pages = new Map<McpServerRecord, Promise<Page>>()
  for (let next = position; next !== null; next = nextPosition(records, next, null)) {
    const page = pageInTime(listing, signal, next)
    // Its failure is reported where the page is used.
    page.catch(() => undefined)
    pages.set(next.server, page)
  }
  const offers: Json[] = []
  let taken = new ServerPages(position)
  // What is late and was not requested yet is left for the next page.
  while (position !== null && offers.length < enough && (pages.has(position.server) || !signal.aborted)) {
    const { server } = position
    const asked = pages.get(server) ?? pageInTime(listing, signal, position)
    pages.delete(server)
    const page = await pageOrMissing(listing, server, asked)
    // A server that did not answer has not said that it offers nothing.
    const approved = page === null ? [] : servers.approved(server, list.kind, page.offers)
    const shown = approved.filter((offer) => listing.mayUse(server, offer) && taken.isNew(String(offer[list.named])))
    offers.push(...shown.map((offer) => publishedOffer(server.name, offer)))
    const next = page?.next ?? null
    position = nextPosition(records, position, taken.isNewCursor(next) ? next : null)
    if (position?.server === server) continue
    if (taken.repeats) listing.repeats(server)
    taken = new ServerPages(position)
  }
  return { [list.member]: offers, ...(position === null ? {} : { nextCursor: cursorOf(position, listing) }) }
}

/** What was taken of one server. */
class ServerPages {
  repeats = false
  readonly #names = new Set<string>()
  readonly #cursors: Set<string | undefined>

  constructor(begun: Position | null) {
    this.#cursors = new Set([begun?.cursor])
  }

  isNew(name: string): boolean {
    return this.#add(this.#names, name)
  }

  isNewCursor(cursor: string | null): boolean {
    return cursor === null || this.#add(this.#cursors, cursor)
  }

  #add<Value>(known: Set<Value>, value: Value): boolean {
    const isNew = !known.has(value)
    if (isNew) known.add(value)
    else this.repeats = true
    return isNew
  }
}

const first = (records: readonly McpServerRecord[]): Position | null =>
  records[0] === undefined ? null : { server: records[0], cursor: undefined, pages: 0 }

function nextPosition(records: readonly McpServerRecord[], { server, pages }: Position, next: string | null) {
  if (next !== null && pages + 1 < mostPages) return { server, cursor: next, pages: pages + 1 }
  return first(records.slice(records.indexOf(server) + 1))
}

interface Page {
  readonly offers: Named[]
  readonly next: string | null
}

/** Null where the server could not be asked. */
async function pageOrMissing(listing: Listing, server: McpServerRecord, asked: Promise<Page>): Promise<Page | null> {
  try {
    return await asked
  } catch (error) {
    if (listing.signal.aborted) throw error
    listing.missing(server, error)
    return null
  }
}

/** The page before the signal is aborted; of a server that was late, before the list has waited `graceMilliseconds`. */
async function pageInTime(listing: Listing, signal: AbortSignal, position: Position): Promise<Page> {
  const { late, list, session, timeoutMilliseconds = longestMilliseconds } = listing
  const { server } = position
  if (late.has(server)) {
    const signal = AbortSignal.timeout(timeoutMilliseconds)
    const asked = pageOf({ list, session, late, signal }, position)
    asked.then(() => late.answered(server), ignored)
    const page = await Promise.race([asked, Bun.sleep(graceMilliseconds).then(() => null)])
    if (page !== null) return page
    late.missed(session, server)
    throw new Failure('mcp.server_timeout', { message: 'The MCP server was late before and has not answered since' })
  }
  try {
    return await pageOf({ list, session, late, signal }, position)
  } catch (error) {
    if (signal.aborted && !listing.signal.aborted) late.missed(session, server)
    throw error
  }
}

/** The page of a late server that is still late; the list has gone on without it. */
const ignored = () => undefined

type Asked = Pick<Listing, 'list' | 'session' | 'signal'> & Partial<Pick<Listing, 'late'>>

async function pageOf({ list, session, signal, late }: Asked, { server, cursor }: Position): Promise<Page> {
  const connection = await connectionUntil(signal, session, server, late)
  if (connection.capabilities[list.capability] === undefined) return { offers: [], next: null }
  const result = await connection.request(list.method, cursor === undefined ? {} : { cursor }, { signal })
  const offers = result[list.member]
  const next = result.nextCursor
  return {
    offers: Array.isArray(offers)
      ? offers.filter(isNamed).filter((offer) => fits(offer, list, session, connection))
      : [],
    next: typeof next === 'string' && next !== cursor ? next : null,
  }
}

/** Rejects with the signal's reason when it is not open in time; once it is open it counts as an answer. */
async function connectionUntil(
  signal: AbortSignal,
  session: McpSession,
  server: McpServerRecord,
  lateServers: LateServers | undefined,
): Promise<McpConnection> {
  const opening = session.connection(server)
  const late = Promise.withResolvers<never>()
  const giveUp = () => {
    late.reject(signal.reason)
    // Then its offers count as new; a server that cannot be opened changes nothing.
    // A server that fails stays among the late ones.
    opening.then(() => lateServers?.answered(server)).catch(() => undefined)
  }
  signal.addEventListener('abort', giveUp, { once: true })
  try {
    return await Promise.race([opening, late.promise])
  } finally {
    signal.removeEventListener('abort', giveUp)
  }
}

/** A tool whose marks are not allowed is left out (2026-07-28, Custom Headers); older versions know no marks. */
const fits = (offer: Named, { kind }: ListKind, session: McpSession, connection: McpConnection): boolean =>
  kind !== 'tool' || !(session.modern || connection.modern) || markedArguments(offer) !== null

const isNamed = (offer: unknown): offer is Named => isJson(offer) && typeof offer.name === 'string'

/** The names or addresses of all approved offers of one kind. */
export async function shownNames(
  asked: Asked & { readonly servers: Pick<McpServers, 'approved'> },
  server: McpServerRecord,
): Promise<ShownNames> {
  const [approved, held] = [new Set<string>(), new Set<string>()]
  const marked = new Map<string, readonly MarkedArgument[]>()
  let next: string | null = null
  const cursors = new Set<string | null>()
  for (let pages = 0; pages < mostPages && !cursors.has(next); pages++) {
    cursors.add(next)
    const page: Page = await pageOrNoList(asked, { server, cursor: next ?? undefined, pages })
    const shown = new Set(asked.servers.approved(server, asked.list.kind, page.offers))
    for (const offer of page.offers) (shown.has(offer) ? approved : held).add(String(offer[asked.list.named]))
    for (const offer of asked.list.kind === 'tool' ? shown : []) {
      const marks = markedArguments(offer) ?? []
      if (marks.length > 0) marked.set(offer.name, marks)
    }
    if (page.next === null) break
    next = page.next
  }
  return { approved, held, marked }
}

/** A server may have resources without templates, or the reverse. */
async function pageOrNoList(asked: Asked, position: Position): Promise<Page> {
  try {
    return await pageOf(asked, position)
  } catch (thrown) {
    if (!(thrown instanceof McpError) || thrown.code !== rpcCodes.methodNotFound) throw thrown
    return { offers: [], next: null }
  }
}

/** No policy reads a cursor on its way back to the server, so only cursors given to the same session are accepted. */
const sealLength = 22

type Signer = Pick<Listing, 'cursorKey' | 'session' | 'list'>

const sealOf = (position: string, { cursorKey, session, list }: Signer): string =>
  createHmac('sha256', cursorKey)
    .update(`mcp-cursor ${list.method} ${session.id} ${position}`)
    .digest('base64url')
    .slice(0, sealLength)

function cursorOf({ server, cursor, pages }: Position, signer: Signer): string {
  const position = Buffer.from(JSON.stringify([server.name, cursor ?? null, pages])).toString('base64url')
  return sealOf(position, signer) + position
}

/** The position of a cursor; a cursor of a removed server belongs to another list. */
function positionOf(cursor: unknown, signer: Signer, records: readonly McpServerRecord[]): Position {
  const [name, own, pages] = typeof cursor === 'string' ? parsedCursor(cursor, signer) : []
  const server = records.find((record) => record.name === name)
  if (server === undefined || !(own === null || typeof own === 'string') || !isCount(pages)) {
    throw new McpError(rpcCodes.invalidParams, 'The cursor is not valid for this list: start again without it')
  }
  return { server, cursor: own ?? undefined, pages }
}

const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value < mostPages

function parsedCursor(cursor: string, signer: Signer): unknown[] {
  const position = cursor.slice(sealLength)
  const seal = Buffer.from(sealOf(position, signer))
  const given = Buffer.from(cursor.slice(0, sealLength))
  if (given.length !== seal.length || !timingSafeEqual(given, seal)) return []
  const parsed: unknown = JSON.parse(Buffer.from(position, 'base64url').toString())
  return Array.isArray(parsed) ? parsed : []
}

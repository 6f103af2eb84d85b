/**
 * The lists of all servers as one (tools, prompts, resources, templates), a page at a time.
 *
 * 1. Servers come in the order of the catalog, each with its own pages in its own order. A cursor says which server, the
 *    server's own cursor there, and how many of its pages were taken.
 * 2. Of what a server offers only what was approved as it is, and what this caller may use, is shown.
 * 3. A server that cannot be reached, or breaks the protocol, is left out and told of: the rest of the list stands.
 * 4. A server whose pages have no end gives way to the next after a number of them.
 */
import { rpcCodes } from '../../lib/json-rpc.ts'
import type { Json, McpServerRecord, McpServers, OfferKind } from '../connection.ts'
import { McpError } from '../mcp-error.ts'
import { isJson } from '../protocol.ts'
import { publishedOffer } from './names.ts'
import type { McpSession } from './session.ts'

/** A page ends with the server's page that makes it this long. */
const enough = 500
const mostPages = 100

export interface ListKind {
  readonly method: string
  readonly kind: OfferKind
  /** The member of the result that holds them. */
  readonly member: string
  /** The member of each that says what it is asked for by. */
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
  readonly signal: AbortSignal
  /** Whether this caller may use what a server offers. */
  mayUse(server: McpServerRecord, offer: Named): boolean
  /** Told of a server whose part is missing. */
  missing(server: McpServerRecord, error: unknown): void
}

interface Position {
  server: McpServerRecord
  cursor: string | undefined
  pages: number
}

/** One page of the merged list. Throws an McpError for a cursor that is none of ours. */
export async function listPage(listing: Listing): Promise<Json> {
  const { list, session, servers, cursor } = listing
  const records = servers.list()
  let position = cursor === undefined ? first(records) : positionOf(cursor, records)
  // Connections that are opened one after the other would make a list as slow as all of them together.
  if (cursor === undefined) await Promise.allSettled(records.map((record) => session.connection(record)))
  const offers: Json[] = []
  while (position !== null && offers.length < enough) {
    const { server } = position
    const page = await pageOrMissing(listing, position)
    offers.push(
      ...servers
        .approved(server, list.kind, page.offers)
        .filter((offer) => listing.mayUse(server, offer))
        .map((offer) => publishedOffer(server.name, offer)),
    )
    position = nextPosition(records, position, page.next)
  }
  return { [list.member]: offers, ...(position === null ? {} : { nextCursor: cursorOf(position) }) }
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

async function pageOrMissing(listing: Listing, position: Position): Promise<Page> {
  try {
    return await pageOf(listing, position)
  } catch (error) {
    if (listing.signal.aborted) throw error
    listing.missing(position.server, error)
    return { offers: [], next: null }
  }
}

type Asked = Pick<Listing, 'list' | 'session' | 'signal'>

async function pageOf({ list, session, signal }: Asked, { server, cursor }: Position): Promise<Page> {
  const connection = await session.connection(server)
  if (connection.capabilities[list.capability] === undefined) return { offers: [], next: null }
  const result = await connection.request(list.method, cursor === undefined ? {} : { cursor }, { signal })
  const offers = result[list.member]
  const next = result.nextCursor
  return {
    offers: Array.isArray(offers) ? offers.filter(isNamed) : [],
    next: typeof next === 'string' && next !== cursor ? next : null,
  }
}

const isNamed = (offer: unknown): offer is Named => isJson(offer) && typeof offer.name === 'string'

/** The names, or addresses, of everything of one kind that a server offers and that is approved. */
export async function approvedNames(
  asked: Asked & { readonly servers: Pick<McpServers, 'approved'> },
  server: McpServerRecord,
): Promise<ReadonlySet<string>> {
  const names = new Set<string>()
  let next: string | null = null
  for (let pages = 0; pages === 0 || (next !== null && pages < mostPages); pages++) {
    const page: Page = await pageOrNoList(asked, { server, cursor: next ?? undefined, pages })
    for (const offer of asked.servers.approved(server, asked.list.kind, page.offers)) {
      names.add(String(offer[asked.list.named]))
    }
    next = page.next
  }
  return names
}

/** A server may have resources and know no list of templates, or the other way about. */
async function pageOrNoList(asked: Asked, position: Position): Promise<Page> {
  try {
    return await pageOf(asked, position)
  } catch (thrown) {
    if (!(thrown instanceof McpError) || thrown.code !== rpcCodes.methodNotFound) throw thrown
    return { offers: [], next: null }
  }
}

const cursorOf = ({ server, cursor, pages }: Position): string =>
  Buffer.from(JSON.stringify([server.name, cursor ?? null, pages])).toString('base64url')

/** Where a cursor goes on; a server that is gone meanwhile makes it one of another list. */
function positionOf(cursor: unknown, records: readonly McpServerRecord[]): Position {
  const [name, own, pages] = typeof cursor === 'string' ? parsedCursor(cursor) : []
  const server = records.find((record) => record.name === name)
  if (server === undefined || !(own === null || typeof own === 'string') || !isCount(pages)) {
    throw new McpError(rpcCodes.invalidParams, 'The cursor is none of this list: begin again without it')
  }
  return { server, cursor: own ?? undefined, pages }
}

const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value < mostPages

function parsedCursor(cursor: string): unknown[] {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    return Array.isArray(parsed) ? parsed : []
  } catch {
    // It was never one of ours; the caller is told so.
    return []
  }
}

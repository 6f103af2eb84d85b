/**
 * `/v1/catalog/mcp-servers`: which MCP servers there are, how they are reached, and by which secrets, which never come
 * out.
 */
import { and, eq, gt, isNull, sql } from 'drizzle-orm'
import { type PageQuery, recordPage } from '../../api/page.ts'
import { type RecordCall, resourceRoutes } from '../../api/resource-routes.ts'
import { Failure } from '../../failure.ts'
import {
  atVersion,
  type CatalogDependencies,
  changeable,
  changeCatalog,
  holds,
  madeAt,
  missing,
  nameIsFree,
  wrong,
} from '../../providers/catalog/catalog-change.ts'
import { insert, newStateVersion, query, remove, statement, update } from '../../store/query.ts'
import { mcpConnections } from '../../store/schema/ledger/oauth.ts'
import { mcpOffers } from '../../store/schema/ledger/policies.ts'
import { mcpApprovals, mcpBaselines, mcpServers } from '../../store/schema/state/catalog.ts'
import type { Statement } from '../../store/statement.ts'
import { expandPreset, type NamedServer } from '../presets/expand-preset.ts'
import { checkAddress, type ServerAddress } from '../servers/server-address.ts'
import {
  forgetServerKey,
  keepServerKey,
  noServerCredentials,
  openServerCredentials,
  openServerKey,
  type ServerCredentials,
  sealServerCredentials,
  setPersonalSecret,
} from './server-credentials.ts'
import { amountOf, governed, shownToolLimits } from './server-governance.ts'
import {
  type Command,
  type McpServerReply,
  mcpServerResource,
  mcpTimeoutsSchema,
  type OAuthFields,
  type PersonalFields,
  type UpdateMcpServer,
} from './server-resource.ts'

export type ServerRow = typeof mcpServers.$inferSelect

export const mcpServerRoutes = (deps: CatalogDependencies) =>
  resourceRoutes(mcpServerResource, {
    list: (query) => listServers(deps, query),
    get: async (id) => await serverRecord(deps, await requireServer(deps, id)),
    create: (body, call) => createServer(deps, call, expandPreset(body)),
    update: async (id, body, call) =>
      await updateServer(deps, call, changeable(call, await requireServer(deps, id)), body),
    remove: async (id, call) => await deleteServer(deps, call, changeable(call, await requireServer(deps, id))),
  })

/** The MCP server of this id. Throws `not_found`. */
export async function requireServer({ state }: Pick<CatalogDependencies, 'state'>, id: string): Promise<ServerRow> {
  const found = and(eq(mcpServers.id, id), eq(mcpServers.deleted, 0))
  const row = await query(state).select().from(mcpServers).where(found).get()
  if (row === undefined) throw missing('MCP server')
  return row
}

async function createServer(deps: CatalogDependencies, call: RecordCall, body: NamedServer) {
  const id = deps.newId()
  const { name, approval, enabled } = body
  const reached = checkAddress(deps, {
    url: body.url ?? null,
    command: body.command ?? null,
    credentials: {
      headers: body.headers ?? {},
      oauth: body.oauth ?? null,
      environment: body.environment ?? {},
      personal: personalOf(body.personal, body.personal_oauth ?? null),
    },
  })
  await requireFreeName(deps, name, id)
  const dataKey = deps.randomBytes(32)
  await changeCatalog(deps, call, {
    type: 'catalog.created',
    details: { mcp_server_id: id, name, approval, enabled, ...said(reached) },
    guard: nameIsFree(mcpServers, name, id),
    state: [
      statement(
        insert(mcpServers).values({
          id,
          name,
          url: reached.url,
          command: jsonOrNull(reached.command),
          sealedCredentials: sealServerCredentials(dataKey, id, reached.credentials),
          timeouts: jsonOrNull(body.timeouts),
          approval,
          enabled: enabled ? 1 : 0,
          ...governed(body),
          position: sql`(select coalesce(max(position), 0) + 1 from ${mcpServers})`,
          version: newStateVersion,
        }),
      ),
    ],
    ledger: [
      keepServerKey(deps, id, dataKey, deps.clock.now()),
      ...setPersonalSecret(deps, id, body.personal_oauth?.client_secret ?? null, deps.clock.now()),
    ],
  })
  return await serverRecord(deps, await requireServer(deps, id))
}

const listServers = (deps: CatalogDependencies, page: PageQuery) =>
  recordPage(page, {
    filters: { list: 'mcp_servers' },
    read: (after, count) =>
      query(deps.state)
        .select()
        .from(mcpServers)
        .where(and(gt(mcpServers.id, after), eq(mcpServers.deleted, 0)))
        .orderBy(mcpServers.id)
        .limit(count),
    show: (rows) => Promise.all(rows.map((row) => serverRecord(deps, row))),
  })

async function updateServer(deps: CatalogDependencies, call: RecordCall, before: ServerRow, body: UpdateMcpServer) {
  const { id } = before
  const name = body.name ?? before.name
  if (name !== before.name) await requireFreeName(deps, name, id)
  const held = await heldCredentials(deps, before)
  const reached = checkAddress(deps, newReach(before, held.credentials, body))
  requireSecretsAnew(before, reached, held.credentials, body)
  const dataKey = held.dataKey ?? deps.randomBytes(32)
  await changeCatalog(deps, call, {
    type: 'catalog.updated',
    details: {
      ...{ mcp_server_id: id, name, fields: Object.keys(body), ...said(reached) },
      ...(body.quarantined === undefined ? {} : { quarantined: body.quarantined }),
    },
    guard: and(atVersion(mcpServers, before), nameIsFree(mcpServers, name, id)),
    state: [
      statement(
        update(mcpServers)
          .set({
            name,
            url: reached.url,
            command: jsonOrNull(reached.command),
            sealedCredentials: sealServerCredentials(dataKey, id, reached.credentials),
            ...(body.timeouts === undefined ? {} : { timeouts: jsonOrNull(body.timeouts) }),
            ...(body.approval === undefined ? {} : { approval: body.approval }),
            ...(body.enabled === undefined ? {} : { enabled: body.enabled ? 1 : 0 }),
            ...governed(body),
            version: newStateVersion,
          })
          .where(eq(mcpServers.id, id)),
      ),
    ],
    ledger: [keepServerKey(deps, id, dataKey, deps.clock.now()), ...personalStatements(deps, before, reached, body)],
  })
  return await serverRecord(deps, await requireServer(deps, id))
}

/** What people's connections become where the place or the way of authorizing changes: tokens go nowhere else. */
function personalStatements(
  deps: CatalogDependencies,
  { id, url }: ServerRow,
  { url: newUrl, credentials: { personal } }: ServerAddress,
  { personal_oauth }: UpdateMcpServer,
): Statement[] {
  const now = deps.clock.now()
  return [
    ...(personal_oauth === undefined && personal !== undefined
      ? []
      : setPersonalSecret(deps, id, personal_oauth?.client_secret ?? null, now)),
    ...(personal !== undefined && newUrl === url && personal_oauth === undefined ? [] : [endConnections(id, now)]),
  ]
}

/** Nobody gets the tokens of people for this server any more. */
const endConnections = (id: string, now: number): Statement =>
  statement(
    update(mcpConnections)
      .set({ endedAt: now })
      .where(and(eq(mcpConnections.serverId, id), isNull(mcpConnections.endedAt))),
  )

async function deleteServer(deps: CatalogDependencies, call: RecordCall, before: ServerRow) {
  const { id, name } = before
  const reply = await serverRecord(deps, before)
  const gone = { deleted: 1, version: newStateVersion }
  await changeCatalog(deps, call, {
    type: 'catalog.deleted',
    details: { mcp_server_id: id, name },
    guard: atVersion(mcpServers, before),
    state: [
      statement(
        update(mcpServers)
          .set({ ...gone, sealedCredentials: null })
          .where(eq(mcpServers.id, id)),
      ),
      statement(
        update(mcpApprovals)
          .set(gone)
          .where(and(eq(mcpApprovals.serverId, id), eq(mcpApprovals.deleted, 0))),
      ),
      statement(
        update(mcpBaselines)
          .set(gone)
          .where(and(eq(mcpBaselines.serverId, id), eq(mcpBaselines.deleted, 0))),
      ),
    ],
    ledger: [
      forgetServerKey(id),
      ...setPersonalSecret(deps, id, null, deps.clock.now()),
      endConnections(id, deps.clock.now()),
      statement(remove(mcpOffers).where(eq(mcpOffers.serverId, id))),
    ],
  })
  return reply
}

async function serverRecord(deps: CatalogDependencies, row: ServerRow): Promise<McpServerReply> {
  const { credentials } = await heldCredentials(deps, row)
  return {
    id: row.id,
    name: row.name,
    ...said({ url: row.url, command: commandOf(row), credentials }),
    timeouts: row.timeouts === null ? null : mcpTimeoutsSchema.parse(JSON.parse(row.timeouts)),
    approval: row.approval,
    enabled: row.enabled === 1,
    quarantined: row.quarantined === 1,
    tools: row.tools,
    price_per_call: amountOf(row.pricePerCall),
    requests_per_minute: row.requestsPerMinute,
    tool_limits: shownToolLimits(row),
    version: row.version,
    created_at: madeAt(row.id),
  }
}

/** What may be said of how a server is reached. */
const said = ({ url, command, credentials: { headers, oauth, environment, personal } }: ServerAddress) => ({
  url,
  header_names: Object.keys(headers).toSorted(),
  oauth: oauth === null ? null : withoutSecret(oauth),
  command,
  environment_names: Object.keys(environment).toSorted(),
  personal: personal !== undefined,
  personal_oauth: personal !== undefined && Object.keys(personal).length > 0 ? personal : null,
})

/** The client's secret is kept apart, because gateways have no use for it. */
function personalOf(wanted: boolean, fields: PersonalFields | null): ServerCredentials['personal'] {
  if (fields === null || Object.keys(fields).length === 0) return wanted ? {} : undefined
  if (!wanted) throw wrong('personal_oauth', 'It is for a server with personal set')
  const { client_secret: secret, ...personal } = fields
  if (secret !== undefined && personal.client_id === undefined) {
    throw wrong('personal_oauth.client_id', 'Write the client that the secret belongs to')
  }
  return personal
}

const withoutSecret = ({ client_secret: _, ...rest }: OAuthFields) => rest

const commandOf = ({ command }: ServerRow): Command | null => (command === null ? null : JSON.parse(command))

async function heldCredentials(deps: CatalogDependencies, { id, sealedCredentials: sealed }: ServerRow) {
  const dataKey = await openServerKey(deps, id)
  const credentials =
    dataKey === null || sealed === null ? noServerCredentials : openServerCredentials(dataKey, id, sealed)
  return { dataKey, credentials }
}

/** A URL takes the place of a command and the other way round; what belongs to the former goes with it. */
function newReach(before: ServerRow, held: ServerCredentials, body: UpdateMcpServer): ServerAddress {
  const byCommand = body.command !== undefined || (body.url === undefined && before.command !== null)
  const kept = <Field extends keyof ServerCredentials>(field: Field, ofCommand: boolean): ServerCredentials[Field] =>
    ofCommand === byCommand ? held[field] : noServerCredentials[field]
  return {
    url: body.url ?? (byCommand ? null : before.url),
    command: body.command ?? (byCommand ? commandOf(before) : null),
    credentials: {
      headers: body.headers === undefined ? kept('headers', false) : (body.headers ?? {}),
      oauth: body.oauth === undefined ? kept('oauth', false) : body.oauth,
      environment: body.environment === undefined ? kept('environment', true) : (body.environment ?? {}),
      personal: newPersonal(byCommand ? undefined : held.personal, body),
    },
  }
}

function newPersonal(held: ServerCredentials['personal'], body: UpdateMcpServer): ServerCredentials['personal'] {
  const wanted = body.personal ?? held !== undefined
  return body.personal_oauth === undefined && wanted ? (held ?? {}) : personalOf(wanted, body.personal_oauth ?? null)
}

/**
 * A secret goes only where whoever knows it has sent it: with a new address or program it must be given anew, or be
 * taken away, so that nobody who may edit the catalog can have it sent to an address of theirs.
 */
function requireSecretsAnew(
  before: ServerRow,
  reached: ServerAddress,
  held: ServerCredentials,
  body: UpdateMcpServer,
): void {
  const again = 'A new place needs it to be given again: what is kept goes to the present one only'
  const sameCommand = jsonOrNull(reached.command) === before.command
  if (reached.url !== before.url && reached.url !== null && before.url !== null) {
    if (Object.keys(held.headers).length > 0 && body.headers === undefined) throw wrong('headers', again)
    if (held.oauth !== null && body.oauth === undefined) throw wrong('oauth', again)
  }
  if (!sameCommand && reached.command !== null && before.command !== null) {
    if (Object.keys(held.environment).length > 0 && body.environment === undefined) throw wrong('environment', again)
  }
}

async function requireFreeName({ state }: CatalogDependencies, name: string, id: string): Promise<void> {
  if (await holds(state, nameIsFree(mcpServers, name, id))) return
  throw new Failure('conflict', { message: 'There is an MCP server of this name already', param: 'name' })
}

const jsonOrNull = (value: object | null | undefined): string | null =>
  value === null || value === undefined ? null : JSON.stringify(value)

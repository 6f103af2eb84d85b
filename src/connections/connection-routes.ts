/**
 * `/v1/connections`: a person's own accounts at MCP servers.
 *
 *   1. The console lists the servers, and asks for the address to go to; the browser gets the secrets of its attempt as
 *      a sealed cookie. A link into the console does nothing by itself: the person presses a button there.
 *   2. The authorization server sends the browser to the callback, an address of this MCP server's own. The answer
 *      counts in the browser of the attempt, while its person is still signed in there.
 *   3. The browser goes on to the console.
 */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../api/conventions.ts'
import { idParams } from '../api/resource.ts'
import { Failure } from '../failure.ts'
import { timestamp } from '../lib/clock.ts'
import { type ConnectionRecord, connectionSchema } from '../mcp/personal/connection-record.ts'
import { ProviderRefusal, type RefusalReason } from '../members/identity-providers/provider-refusal.ts'
import { sessionOf, sessionPrincipal } from '../members/sessions/authenticate-session.ts'
import type { LiveSession } from '../members/sessions/session.ts'
import { beginConnection, finishConnection } from './connect.ts'
import { connectionAttempts } from './connection-attempt.ts'
import { connectionEvent } from './connection-event.ts'
import type { ConnectionDependencies } from './dependencies.ts'
import { disconnectOwner } from './end-connections.ts'
import { findPersonalServer, type PersonalServer, personalServers } from './personal-server.ts'
import { type ConnectionRow, connectionsOf, findConnection } from './stored-connection.ts'
import { clientDocument } from './upstream-client.ts'

const tag = 'Connections'

/** RFC 6749 section 3.3. */
const beginBody = z.strictObject({
  scope: z
    .string()
    .max(512)
    .regex(/^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/, 'Write words separated by single spaces')
    .optional()
    .describe('What is asked for beside what the account gave before, such as what the server said it lacks'),
})

export const connectionRoutes = (dependencies: ConnectionDependencies) =>
  new Elysia({ name: 'connection' })
    .use(conventions)
    .get(
      '/v1/connections',
      async ({ request }) => {
        const { userId } = await requirePerson(dependencies, request)
        const connections = new Map(
          (await connectionsOf(dependencies.ledger, userId)).map((row) => [row.serverId, row]),
        )
        const servers = await personalServers(dependencies)
        return { connections: servers.map((server) => shown(dependencies, server, connections.get(server.id) ?? null)) }
      },
      {
        access: 'signed-in',
        response: z.object({ connections: z.array(connectionSchema) }),
        detail: { tags: [tag], summary: "Lists the MCP servers that are used with each person's account, and yours" },
      },
    )
    .post(
      '/v1/connections/:id/begin',
      async ({ params: { id }, body: { scope = null }, request, set }) => {
        const session = await requirePerson(dependencies, request)
        if (session.kind !== 'browser') {
          throw new Failure('permission_denied', { message: 'Only a person in a browser can connect an account' })
        }
        const { redirectTo, cookie } = await begin(dependencies, await requireServer(dependencies, id), session, scope)
        set.headers['set-cookie'] = cookie
        return { redirect_to: redirectTo }
      },
      {
        access: 'signed-in',
        failures: [404, 503],
        params: idParams,
        body: beginBody,
        response: z.object({ redirect_to: z.string().describe('Where the browser goes: the authorization server') }),
        detail: { tags: [tag], summary: 'Begins to connect your account at an MCP server, from the console' },
      },
    )
    .delete(
      '/v1/connections/:id',
      async ({ params: { id }, request, requestId }) => {
        const session = await requirePerson(dependencies, request)
        return await disconnect(dependencies, await requireServer(dependencies, id), session, requestId)
      },
      {
        access: 'signed-in',
        failures: [404],
        params: idParams,
        response: connectionSchema,
        detail: {
          tags: [tag],
          summary: 'Ends your connection to an MCP server: its tokens are revoked there if possible, and removed here',
        },
      },
    )
    .get(
      '/v1/connections/callback/:id',
      ({ params: { id }, request, requestId }) => answerCallback(dependencies, id, request, requestId),
      {
        access: 'public',
        internal: true,
        params: idParams,
        detail: { tags: [tag], summary: 'Takes the answer of an authorization server' },
      },
    )
    .get(
      '/v1/connections/clients/:id',
      async ({ params: { id } }) => {
        await requireServer(dependencies, id)
        return clientDocument(dependencies, id)
      },
      {
        access: 'public',
        anyOrigin: true,
        internal: true,
        params: idParams,
        response: z.looseObject({ client_id: z.string(), redirect_uris: z.array(z.string()) }),
        detail: { tags: [tag], summary: 'As which OAuth client this installation connects accounts at an MCP server' },
      },
    )

/** A token acts for a person, but is none. */
async function requirePerson(dependencies: ConnectionDependencies, request: Request): Promise<LiveSession> {
  const { session } = await sessionOf(request, dependencies)
  if (session !== null) return session
  throw new Failure('permission_denied', {
    message: 'Only a person who is signed in can do this: in the console, or after gatehouse auth login',
  })
}

async function requireServer(dependencies: ConnectionDependencies, id: string): Promise<PersonalServer> {
  const server = await findPersonalServer(dependencies, id)
  if (server !== null) return server
  throw new Failure('not_found', { message: "There is no such MCP server that is used with each person's account" })
}

function shown(
  dependencies: ConnectionDependencies,
  { id, name, url }: PersonalServer,
  row: ConnectionRow | null,
): ConnectionRecord {
  return {
    server_id: id,
    server: name,
    url,
    status: row === null ? 'not_connected' : 'connected',
    issuer: row?.issuer ?? null,
    scope: row?.scope ?? null,
    connected_at: row === null ? null : timestamp(row.connectedAt),
    connect_url: connectAddress(dependencies, name).href,
  }
}

async function begin(
  dependencies: ConnectionDependencies,
  server: PersonalServer,
  session: LiveSession,
  more: string | null,
) {
  try {
    return await beginConnection(dependencies, server, session, more)
  } catch (error) {
    if (!(error instanceof ProviderRefusal)) throw error
    throw new Failure('dependency_unavailable', {
      message: `The MCP server ${server.name} cannot be connected now: ${error.message}`,
      cause: error,
    })
  }
}

async function disconnect(
  dependencies: ConnectionDependencies,
  server: PersonalServer,
  session: LiveSession,
  requestId: string,
): Promise<ConnectionRecord> {
  const owner = { userId: session.userId, serverId: server.id }
  if ((await findConnection(dependencies.ledger, owner)) !== null) {
    const event = await connectionEvent(dependencies, {
      ...{ type: 'mcp_connection.ended', principal: sessionPrincipal(session), requestId },
      ...{ userId: session.userId, server },
    })
    await disconnectOwner(dependencies, owner, event)
  }
  return shown(dependencies, server, null)
}

/** Always a redirect into the console, whether the account is connected or not. */
async function answerCallback(
  dependencies: ConnectionDependencies,
  serverId: string,
  request: Request,
  requestId: string,
): Promise<Response> {
  const headers = new Headers({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
  headers.append('set-cookie', connectionAttempts.forget(dependencies))
  const { search, searchParams } = new URL(request.url)
  const { session } = await sessionOf(request, dependencies)
  const server = await findPersonalServer(dependencies, serverId)
  try {
    const attempt = connectionAttempts.of(
      dependencies,
      request,
      searchParams.get('state'),
      (asked) => asked.serverId === serverId,
    )
    if (server === null) throw new ProviderRefusal('attempt_missing', 'The MCP server was changed or removed meanwhile')
    if (session?.userId !== attempt.userId || session.kind !== 'browser') {
      throw new ProviderRefusal('attempt_missing', 'Another account is signed in than the one that asked')
    }
    await finishConnection(dependencies, { server, attempt, session }, { query: search, requestId })
    headers.set('location', consoleAddress(dependencies, server, null))
  } catch (error) {
    if (!(error instanceof ProviderRefusal)) throw error
    if (session !== null && server !== null) await recordRefusal(dependencies, { server, session, requestId }, error)
    headers.set('location', consoleAddress(dependencies, server, error.reason))
  }
  return new Response(null, { status: 303, headers })
}

/** The page of a person's connections, at one of them. */
export function connectAddress({ consoleUrl }: Pick<ConnectionDependencies, 'consoleUrl'>, name: string | null): URL {
  const address = new URL(`${consoleUrl().replace(/\/$/, '')}/connections`)
  if (name !== null) address.searchParams.set('server', name)
  return address
}

function consoleAddress(
  dependencies: ConnectionDependencies,
  server: PersonalServer | null,
  refused: RefusalReason | null,
): string {
  const address = connectAddress(dependencies, server?.name ?? null)
  if (refused !== null) address.searchParams.set('refused', refused)
  return address.href
}

/** Without a person nothing is recorded: anybody can call the address. */
async function recordRefusal(
  dependencies: ConnectionDependencies,
  { server, session, requestId }: { server: PersonalServer; session: LiveSession; requestId: string },
  { reason, message }: ProviderRefusal,
): Promise<void> {
  const event = await connectionEvent(dependencies, {
    ...{ type: 'mcp_connection.refused', refused: `mcp_connection.${reason}`, principal: sessionPrincipal(session) },
    ...{ requestId, userId: session.userId, server, details: { fault: message } },
  })
  await dependencies.recorder.append([event])
}

/** The queries of people's connections, and the sealing of their tokens: for one person and one server each. */
import { and, eq, isNotNull, isNull, lt, or, type SQL } from 'drizzle-orm'
import { z } from 'zod'
import type { MasterKey } from '../store/keys/master-key.ts'
import type { Database } from '../store/open.ts'
import { insert, query, remove, statement, update } from '../store/query.ts'
import { mcpConnections } from '../store/schema/ledger/oauth.ts'
import type { Statement } from '../store/statement.ts'

export type ConnectionRow = typeof mcpConnections.$inferSelect
export type ConnectionOwner = Pick<ConnectionRow, 'userId' | 'serverId'>

const secretsSchema = z.object({
  /** The address that the access token is sent to, and no other. */
  url: z.string(),
  /** The issuer of the server's record then; null where there was none. */
  named_issuer: z.string().nullable(),
  resource: z.string(),
  client_id: z.string(),
  client_secret: z.string().nullable(),
  access_token: z.string(),
  refresh_token: z.string().nullable(),
})
export type ConnectionSecrets = z.infer<typeof secretsSchema>

const idOf = ({ userId, serverId }: ConnectionOwner): string => `${userId}:${serverId}`

export const sealSecrets = (masterKey: MasterKey, owner: ConnectionOwner, secrets: ConnectionSecrets): string =>
  masterKey.seal('mcp_connection', idOf(owner), JSON.stringify(secrets))

export const openSecrets = (masterKey: MasterKey, row: ConnectionRow): ConnectionSecrets =>
  secretsSchema.parse(JSON.parse(masterKey.open('mcp_connection', idOf(row), row.sealed)))

const of = ({ userId, serverId }: ConnectionOwner): SQL | undefined =>
  and(eq(mcpConnections.userId, userId), eq(mcpConnections.serverId, serverId))

type Made = Pick<ConnectionRow, 'connectedAt' | 'refreshedAt'>

/** Whether the tokens of a connection are still those that were read. Their seal changes with the master key. */
export const isSameMade = (one: Made, other: Made): boolean =>
  one.connectedAt === other.connectedAt && one.refreshedAt === other.refreshedAt

/** The connection, as long as its tokens are those that were read. */
const asRead = (row: ConnectionRow): SQL | undefined => {
  const { connectedAt, refreshedAt } = mcpConnections
  const refreshed = row.refreshedAt === null ? isNull(refreshedAt) : eq(refreshedAt, row.refreshedAt)
  return and(of(row), eq(connectedAt, row.connectedAt), refreshed)
}

/** The connection that is in force, or null. */
export const findConnection = async (ledger: Database, owner: ConnectionOwner): Promise<ConnectionRow | null> =>
  (await query(ledger)
    .select()
    .from(mcpConnections)
    .where(and(of(owner), isNull(mcpConnections.endedAt)))
    .get()) ?? null

/** Those of a person that are in force. */
export const connectionsOf = (ledger: Database, userId: string): Promise<ConnectionRow[]> =>
  query(ledger)
    .select()
    .from(mcpConnections)
    .where(and(eq(mcpConnections.userId, userId), isNull(mcpConnections.endedAt)))

/** Keeps a connection instead of the one that there was. */
export const keepConnection = (row: ConnectionRow): Statement =>
  statement(
    insert(mcpConnections)
      .values(row)
      .onConflictDoUpdate({ target: [mcpConnections.userId, mcpConnections.serverId], set: row }),
  )

/** What a refresh brought; changes and returns nothing where the connection is no longer the one that was read. */
export const renewConnection = (row: ConnectionRow, changes: Partial<ConnectionRow>): Statement =>
  statement(update(mcpConnections).set(changes).where(asRead(row)).returning({ userId: mcpConnections.userId }))

/** Takes the refresh of a connection for this process; nothing is returned where another one has it. */
export const claimRefresh = (row: ConnectionRow, now: number, until: number): Statement =>
  statement(
    update(mcpConnections)
      .set({ refreshingUntil: until })
      .where(
        and(
          asRead(row),
          isNull(mcpConnections.endedAt),
          or(isNull(mcpConnections.refreshingUntil), lt(mcpConnections.refreshingUntil, now)),
        ),
      )
      .returning({ userId: mcpConnections.userId }),
  )

/** From now on nobody gets the tokens of a connection that is still the one that was read. */
export const endConnection = (row: ConnectionRow, now: number): Statement => renewConnection(row, { endedAt: now })

/** From now on nobody gets the tokens of a person for a server, whether or not they were refreshed since they were read. */
export const endConnectionOf = (owner: ConnectionOwner, now: number): Statement =>
  statement(
    update(mcpConnections)
      .set({ endedAt: now })
      .where(and(of(owner), isNull(mcpConnections.endedAt))),
  )

/** From now on nobody gets the tokens of a person. */
export const endConnectionsOf = (userId: string, now: number): Statement =>
  statement(
    update(mcpConnections)
      .set({ endedAt: now })
      .where(and(eq(mcpConnections.userId, userId), isNull(mcpConnections.endedAt))),
  )

/** Those that ended and whose tokens are not removed yet. */
export const endedConnections = (ledger: Database, count: number): Promise<ConnectionRow[]> =>
  query(ledger).select().from(mcpConnections).where(isNotNull(mcpConnections.endedAt)).limit(count)

/** The connection of a person to a server that ended and whose tokens are not removed yet, or null. */
export const findEnded = async (ledger: Database, owner: ConnectionOwner): Promise<ConnectionRow | null> =>
  (await query(ledger)
    .select()
    .from(mcpConnections)
    .where(and(of(owner), isNotNull(mcpConnections.endedAt)))
    .get()) ?? null

/** Removes the tokens of an ended connection, unless the person has connected again. */
export const removeEnded = (row: ConnectionRow): Statement => statement(remove(mcpConnections).where(asRead(row)))

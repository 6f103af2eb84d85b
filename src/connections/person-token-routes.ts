/**
 * Gives a gateway the access token of a caller's own account (mcp/personal/person-token.ts). Who the caller is follows
 * from the credential that the caller showed to the gateway, and is found here: an OAuth access token acts for the
 * person who approved it; an API token counts only for the person whom it is bound to and who made it, so nobody gets
 * at another person's account by making a token in that person's name.
 */
import { eq } from 'drizzle-orm'
import { Elysia } from 'elysia'
import { conventions } from '../api/conventions.ts'
import { hashSecret } from '../identity/secret.ts'
import {
  type PersonTokenReply,
  type PersonTokenRequest,
  personTokenReplySchema,
  personTokenRequestSchema,
} from '../mcp/personal/person-token.ts'
import { findUser } from '../members/people/stored-user.ts'
import { query } from '../store/query.ts'
import { tokens as ledgerTokens } from '../store/schema/ledger/tokens.ts'
import { oauthTokens, tokens } from '../store/schema/state/tokens.ts'
import { tokenStatus } from '../tokens/governed-token.ts'
import { connectAddress } from './connection-routes.ts'
import type { CurrentTokens } from './current-token.ts'
import type { ConnectionDependencies } from './dependencies.ts'
import { findPersonalServer, type PersonalServer } from './personal-server.ts'

export const personTokenRoutes = (dependencies: ConnectionDependencies, currentTokens: CurrentTokens) =>
  new Elysia({ name: 'person-token' }).use(conventions).post(
    '/v1/gateway-runtime/person-tokens',
    async ({ principal, body, set }): Promise<PersonTokenReply> => {
      set.headers['cache-control'] = 'no-store'
      return await personToken(dependencies, currentTokens, principal.gatewayId, body)
    },
    {
      access: 'runtime:session',
      internal: true,
      body: personTokenRequestSchema,
      response: personTokenReplySchema,
      detail: { tags: ['Gateway runtime'], summary: "The access token of a caller's own account at an MCP server" },
    },
  )

async function personToken(
  dependencies: ConnectionDependencies,
  currentTokens: CurrentTokens,
  gatewayId: string | null,
  { server_id: serverId, server_url: url, credential, refused }: PersonTokenRequest,
): Promise<PersonTokenReply> {
  const server = await findPersonalServer(dependencies, serverId)
  // A gateway may know the record as it was, or as this control plane does not know it yet.
  if (server === null || server.url !== url) return { status: 'unavailable' }
  const userId = await personOf(dependencies, { hash: hashSecret(credential), gatewayId, server })
  if (userId === null) return { status: 'no_person' }
  const token = await currentTokens.of(server, userId, refused)
  if (token === 'unavailable') return { status: 'unavailable' }
  const connect_url = connectAddress(dependencies, server.name).href
  if (token === null) return { status: 'not_connected', connect_url }
  const { accessToken, expiresAt } = token
  const left = expiresAt === null ? null : Math.max(0, (expiresAt - dependencies.clock.now()) / 1000)
  return { status: 'connected', user_id: userId, connect_url, access_token: accessToken, expires_in: left }
}

interface Shown {
  hash: string
  gatewayId: string | null
  server: PersonalServer
}

/** The active person for whom a credential acts at this gateway and server; null where it is nobody's. */
async function personOf(dependencies: ConnectionDependencies, shown: Shown): Promise<string | null> {
  const userId = (await personOfAccessToken(dependencies, shown)) ?? (await personOfApiToken(dependencies, shown))
  if (userId === null) return null
  const user = await findUser(dependencies.ledger, userId)
  return user?.status === 'active' ? userId : null
}

async function personOfAccessToken({ state, clock }: ConnectionDependencies, { hash }: Shown): Promise<string | null> {
  const row = await query(state).select().from(oauthTokens).where(eq(oauthTokens.hash, hash)).get()
  if (row === undefined || row.deleted !== 0) return null
  const isUsable = tokenStatus({ ...row, rotatedAt: null }, clock.now()) === 'active'
  return isUsable && row.permissions.includes('mcp:invoke') ? row.userId : null
}

async function personOfApiToken(
  { state, ledger, clock }: ConnectionDependencies,
  { hash, gatewayId, server }: Shown,
): Promise<string | null> {
  const row = await query(state).select().from(tokens).where(eq(tokens.hash, hash)).get()
  if (row === undefined || row.deleted !== 0 || row.userId === null) return null
  const isOfHere = row.gatewayId === null || row.gatewayId === gatewayId
  const mayUse = row.provider === null || row.provider === server.name
  if (!isOfHere || !mayUse || tokenStatus(row, clock.now()) !== 'active') return null
  const made = await query(ledger)
    .select({ by: ledgerTokens.createdBy })
    .from(ledgerTokens)
    .where(eq(ledgerTokens.id, row.id))
    .get()
  return made?.by === `user:${row.userId}` ? row.userId : null
}

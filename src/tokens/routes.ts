/** The routes of `/v1/tokens` (contract section 3). */
import { z } from 'zod'
import { type AnyRoute, type Call, route } from '../api/route.ts'
import { propagationSchema } from '../fleet/wire.ts'
import type { Database } from '../store/open.ts'
import { createToken } from './create.ts'
import { listTokens, listTokensQuery } from './list.ts'
import type { Actor, TokenDependencies } from './minting.ts'
import { type TokenRecord, tokenRecord, tokenRecordSchema } from './record.ts'
import { revokeToken } from './revoke.ts'
import type { StoredToken } from './stored-token.ts'
import { createTokenBody } from './token-body.ts'
import { requireToken } from './visibility.ts'

const idParams = z.strictObject({ id: z.uuid() })
const tokenValue = z.string().describe('The secret: shown in this answer and never again')

export function tokenRoutes(deps: TokenDependencies): AnyRoute[] {
  const organizationId = organizationOf(deps.ledger)
  const toRecord = async (token: StoredToken): Promise<TokenRecord> =>
    tokenRecord(token, await organizationId(), deps.clock.now())
  return [create(deps, toRecord), list(deps, toRecord), get(deps, toRecord), revoke(deps, toRecord)]
}

type ToRecord = (token: StoredToken) => Promise<TokenRecord>

const actorOf = ({ principal, requestId }: Call<unknown, unknown, unknown>): Actor => ({ principal, requestId })

const etag = ({ version }: TokenRecord) => ({ etag: `"${version}"` })

const create = (deps: TokenDependencies, toRecord: ToRecord): AnyRoute =>
  route({
    method: 'POST',
    path: '/v1/tokens',
    tag: 'Tokens',
    summary: 'Make a token',
    access: 'tokens:write',
    body: createTokenBody,
    reply: tokenRecordSchema.extend({ token_value: tokenValue }),
    status: 201,
    async handle(call) {
      const { token, secret } = await createToken(deps, actorOf(call), call.body)
      const made = await toRecord(token)
      return { reply: { ...made, token_value: secret }, secretOf: token.id, headers: etag(made) }
    },
  })

const list = (deps: TokenDependencies, toRecord: ToRecord): AnyRoute =>
  route({
    method: 'GET',
    path: '/v1/tokens',
    tag: 'Tokens',
    summary: 'List tokens, newest first',
    access: 'tokens:read',
    query: listTokensQuery,
    reply: z.object({ tokens: z.array(tokenRecordSchema), next_cursor: z.string().nullable() }),
    async handle({ principal, query }) {
      const page = await listTokens(deps.ledger, principal, query, deps.clock.now())
      return { reply: { tokens: await Promise.all(page.tokens.map(toRecord)), next_cursor: page.nextCursor } }
    },
  })

const get = (deps: TokenDependencies, toRecord: ToRecord): AnyRoute =>
  route({
    method: 'GET',
    path: '/v1/tokens/{id}',
    tag: 'Tokens',
    summary: 'Read a token',
    access: 'tokens:read',
    params: idParams,
    reply: tokenRecordSchema,
    async handle({ principal, params }) {
      const reply = await toRecord(await requireToken(deps.ledger, principal, params.id))
      return { reply, headers: etag(reply) }
    },
  })

const revoke = (deps: TokenDependencies, toRecord: ToRecord): AnyRoute =>
  route({
    method: 'DELETE',
    path: '/v1/tokens/{id}',
    tag: 'Tokens',
    summary: 'Revoke a token',
    access: 'tokens:revoke',
    params: idParams,
    reply: tokenRecordSchema.extend({ propagation: propagationSchema }),
    async handle(call) {
      const { token, propagation } = await revokeToken(deps, actorOf(call), call.params.id)
      const revoked = await toRecord(token)
      return { reply: { ...revoked, propagation: await propagation }, headers: etag(revoked) }
    },
  })

/** The organization never changes once it is made, so it is read once. */
function organizationOf(ledger: Database): () => Promise<string> {
  let known: string | null = null
  return async () => {
    if (known !== null) return known
    const [organization] = await ledger.read<{ id: string }>('select id from organizations')
    if (organization === undefined) throw new Error('There is no organization: the first start has not run')
    known = organization.id
    return known
  }
}

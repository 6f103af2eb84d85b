/** `/v1/scim-tokens`: the tokens by which identity providers call SCIM. Only an owner makes or revokes one. */
import { and, eq, gt, isNull } from 'drizzle-orm'
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { pageQuery, recordPage } from '../../api/page.ts'
import { Failure } from '../../failure.ts'
import { hashSecret, makeSecret, secretHint } from '../../identity/secret.ts'
import { timestamp } from '../../lib/clock.ts'
import { guard, hasRow, insert, query, statement, update } from '../../store/query.ts'
import { identityProviders } from '../../store/schema/ledger/people.ts'
import { scimTokens as table } from '../../store/schema/ledger/scim.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { requireOwner } from '../identity-providers/identity-provider-routes.ts'
import { findProvider } from '../identity-providers/stored-identity-provider.ts'
import { memberEvent, recordChange } from '../member-event.ts'
import { newScimTokenBody, scimTokenSchema, scimTokens } from './scim-token-resource.ts'

const tags = ['People']

export const scimTokenRoutes = (dependencies: MemberDependencies) => {
  const { ledger, recorder, clock, newId, randomBytes } = dependencies
  return new Elysia({ name: 'scim-tokens' })
    .use(conventions)
    .get(
      scimTokens.path,
      async ({ query: asked }) => {
        const { records, next_cursor } = await recordPage(asked, {
          filters: { list: scimTokens.plural },
          read: (start, count) =>
            query(ledger).select().from(table).where(gt(table.id, start)).orderBy(table.id).limit(count),
          show: (rows) => rows.map(tokenRecord),
        })
        return { scim_tokens: records, next_cursor }
      },
      {
        access: 'members:read',
        query: z.strictObject(pageQuery),
        response: z.object({ scim_tokens: z.array(scimTokenSchema), next_cursor: z.string().nullable() }),
        detail: { tags, summary: scimTokens.summaries.list },
      },
    )
    .post(
      scimTokens.path,
      async ({
        body: { identity_provider_id: identityProviderId, name },
        principal,
        requestId,
        showsSecretOf,
        status,
      }) => {
        requireOwner(principal)
        const provider = await findProvider(ledger, identityProviderId)
        if (provider === null) {
          const message = 'There is no such identity provider'
          throw new Failure('invalid_parameter', { param: 'identity_provider_id', message })
        }
        const secret = makeSecret('scim', randomBytes)
        const row = {
          ...{ id: newId(), identityProviderId, name, hash: hashSecret(secret), hint: secretHint(secret) },
          ...{ createdAt: clock.now(), lastUsedAt: null, revokedAt: null },
        }
        const event = await memberEvent(dependencies, {
          ...{ type: 'identity_provider.scim_token_created', principal, requestId },
          details: { identity_provider_id: provider.id, issuer: provider.issuer, scim_token_id: row.id, name },
        })
        const present = guard(hasRow(identityProviders, eq(identityProviders.id, provider.id)))
        await recordChange(recorder, { event, ledger: [present, statement(insert(table).values(row))] })
        showsSecretOf(row.id)
        return status(201, { ...tokenRecord(row), secret, scim_url: `${dependencies.baseUrl()}/scim/v2` })
      },
      {
        access: 'members:write',
        body: newScimTokenBody,
        response: {
          201: scimTokenSchema.extend({
            secret: z.string().describe('Shown this once'),
            scim_url: z.string().describe('What the identity provider calls'),
          }),
        },
        detail: { tags, summary: scimTokens.summaries.create },
      },
    )
    .delete(
      `${scimTokens.path}/:id`,
      async ({ params: { id }, principal, requestId }) => {
        requireOwner(principal)
        const row = await query(ledger).select().from(table).where(eq(table.id, id)).get()
        if (row === undefined) throw new Failure('not_found', { message: 'There is no such SCIM token' })
        if (row.revokedAt !== null) return tokenRecord(row)
        const revokedAt = clock.now()
        const issuer = (await findProvider(ledger, row.identityProviderId))?.issuer ?? ''
        const event = await memberEvent(dependencies, {
          ...{ type: 'identity_provider.scim_token_revoked', principal, requestId },
          details: { identity_provider_id: row.identityProviderId, issuer, scim_token_id: id },
        })
        const revoke = statement(
          update(table)
            .set({ revokedAt })
            .where(and(eq(table.id, id), isNull(table.revokedAt))),
        )
        await recordChange(recorder, { event, ledger: [revoke] })
        return tokenRecord({ ...row, revokedAt })
      },
      {
        access: 'members:write',
        params: z.object({ id: z.uuid() }),
        response: scimTokenSchema,
        detail: { tags, summary: scimTokens.summaries.delete },
      },
    )
}

const tokenRecord = (row: typeof table.$inferSelect): z.infer<typeof scimTokenSchema> => ({
  ...{ id: row.id, identity_provider_id: row.identityProviderId, name: row.name, hint: row.hint },
  status: row.revokedAt === null ? 'active' : 'revoked',
  created_at: timestamp(row.createdAt),
  last_used_at: row.lastUsedAt === null ? null : timestamp(row.lastUsedAt),
})

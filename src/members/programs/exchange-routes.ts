/** The routes that turn a program's code into a session or a token (handbook/tokens.md, handbook/people.md). */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { timestamp } from '../../lib/clock.ts'
import { organizationId } from '../../tokens/organization.ts'
import { tokenRecord, tokenRecordSchema } from '../../tokens/record.ts'
import { tokenName } from '../../tokens/token-body.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { userSchema } from '../people/user-resource.ts'
import { readUser } from '../people/user-routes.ts'
import { refuseForeignPage } from '../sessions/auth-routes.ts'
import { exchangeForSession, exchangeForToken } from './exchange-code.ts'
import { codeBody } from './program-code.ts'

export const exchangeRoutes = (dependencies: MemberDependencies) =>
  new Elysia({ name: 'exchange' })
    .use(conventions)
    .post(
      '/v1/auth/session/exchange-code',
      async ({ body, requestId, request, showsSecretOf, status }) => {
        refuseForeignPage(request, dependencies)
        const { approval, session } = await exchangeForSession(dependencies, body, requestId)
        showsSecretOf(session.id)
        return status(201, {
          session: { id: session.id, expires_at: timestamp(session.expiresAt) },
          session_token: session.secret,
          user: await readUser(dependencies, approval.userId),
        })
      },
      {
        access: 'public',
        failures: [403, 409, 503],
        body: z.strictObject(codeBody),
        response: {
          201: z.object({
            session: z.object({ id: z.uuid(), expires_at: z.iso.datetime() }),
            session_token: z.string().describe('The secret of the session, shown once'),
            user: userSchema,
          }),
        },
        detail: {
          tags: ['Sessions'],
          summary:
            "Turns a program's code for a sign-in into a session of the person who approved, to be sent as Bearer",
        },
      },
    )
    .post(
      '/v1/tokens/exchange-code',
      async ({ body, requestId, request, showsSecretOf, status }) => {
        refuseForeignPage(request, dependencies)
        const { token, secret } = await exchangeForToken(dependencies, body, requestId)
        const organization = (await organizationId(dependencies.ledger)) ?? ''
        const used = (await dependencies.depletion.read([token])).get(token.id) ?? null
        const record = tokenRecord(token, organization, dependencies.clock.now(), used)
        showsSecretOf(token.id)
        return status(201, { ...record, token_value: secret })
      },
      {
        access: 'public',
        failures: [403, 409, 503],
        body: z.strictObject({ ...codeBody, token_name: tokenName }),
        response: { 201: tokenRecordSchema.extend({ token_value: z.string().describe('The secret, shown once') }) },
        detail: {
          tags: ['Tokens'],
          summary: "Exchanges a program's code for a named token, bound to the person who approved it",
        },
      },
    )

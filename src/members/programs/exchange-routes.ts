/** The routes that turn a program's code into a session or a token (handbook/tokens.md, handbook/people.md). */
import { z } from 'zod'
import { type AnyRoute, route } from '../../api/route.ts'
import { timestamp } from '../../lib/clock.ts'
import { organizationId } from '../../tokens/organization.ts'
import { tokenRecord, tokenRecordSchema } from '../../tokens/record.ts'
import { tokenName } from '../../tokens/token-body.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { userSchema } from '../people/user.ts'
import { readUser } from '../people/user-routes.ts'
import { refuseForeignPage } from '../sessions/auth-routes.ts'
import { exchangeForSession, exchangeForToken } from './exchange-code.ts'
import { codeBody } from './program-code.ts'

export const exchangeRoutes = (dependencies: MemberDependencies): AnyRoute[] => [
  exchangeSessionCode(dependencies),
  exchangeTokenCode(dependencies),
]

const exchangeSessionCode = (dependencies: MemberDependencies): AnyRoute =>
  route({
    method: 'POST',
    path: '/v1/auth/session/exchange-code',
    tag: 'Sessions',
    summary: "Turns a program's code for a sign-in into a session of the person who approved, to be sent as Bearer",
    access: 'public',
    body: z.strictObject(codeBody),
    reply: z.object({
      session: z.object({ id: z.uuid(), expires_at: z.iso.datetime() }),
      session_token: z.string().describe('The secret of the session, shown once'),
      user: userSchema,
    }),
    status: 201,
    async handle({ body, requestId }, request) {
      refuseForeignPage(request, dependencies)
      const { approval, session } = await exchangeForSession(dependencies, body, requestId)
      return {
        reply: {
          session: { id: session.id, expires_at: timestamp(session.expiresAt) },
          session_token: session.secret,
          user: await readUser(dependencies, approval.userId),
        },
        secretOf: session.id,
      }
    },
  })

const exchangeTokenCode = (dependencies: MemberDependencies): AnyRoute =>
  route({
    method: 'POST',
    path: '/v1/tokens/exchange-code',
    tag: 'Tokens',
    summary: "Turns a program's code for a named token into that token, bound to the person who approved",
    access: 'public',
    body: z.strictObject({ ...codeBody, token_name: tokenName }),
    reply: tokenRecordSchema.extend({ token_value: z.string().describe('The secret, shown once') }),
    status: 201,
    async handle({ body, requestId }, request) {
      refuseForeignPage(request, dependencies)
      const { token, secret } = await exchangeForToken(dependencies, body, requestId)
      const organization = (await organizationId(dependencies.ledger)) ?? ''
      const used = (await dependencies.depletion.read([token])).get(token.id) ?? null
      const record = tokenRecord(token, organization, dependencies.clock.now(), used)
      return { reply: { ...record, token_value: secret }, secretOf: token.id }
    },
  })

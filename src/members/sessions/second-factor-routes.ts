/**
 * `/v1/auth/second-factor`: a person adds an authenticator app to their own account, or takes it away.
 * `/v1/users/{id}/second-factor`: who may change them does so when the app is lost.
 */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { Failure } from '../../failure.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { memberEvent, recordChange } from '../member-event.ts'
import { base32, otpauthUri, totpSecretBytes } from '../people/totp.ts'
import { assertMayChange } from '../people/user.ts'
import { userSchema } from '../people/user-resource.ts'
import { assertNotOwnPassword, readUser, requireUser } from '../people/user-routes.ts'
import { requireSession } from './auth-routes.ts'
import { hasSecondFactor, proveSecondFactor, removeSecret, setSecret, useSecondFactor } from './second-factor.ts'
import { endSessionsOf } from './session.ts'
import { provePassword } from './sign-in.ts'

const code = z.string().max(20).describe('The six digits that the app shows')

export const secondFactorRoutes = (dependencies: MemberDependencies) => {
  const { ledger, recorder, randomBytes } = dependencies
  return new Elysia({ name: 'second-factor' })
    .use(conventions)
    .post(
      '/v1/auth/second-factor/begin',
      async ({ body: { current_password }, request, showsSecretOf }) => {
        const { userId } = await requireSession(request, dependencies)
        const user = await requireUser(dependencies, userId)
        if (hasSecondFactor(user))
          throw new Failure('conflict', { message: 'The account has a second factor: remove it first' })
        // A stolen session must not become a lasting one.
        await provePassword(dependencies, user, {
          password: current_password,
          address: dependencies.addressOf(request),
        })
        const secret = randomBytes(totpSecretBytes)
        await ledger.write([setSecret(dependencies, userId, secret)])
        showsSecretOf(userId)
        const account = user.email
        return { secret: base32(secret), otpauth_uri: otpauthUri(secret, { issuer: 'Gatehouse', account }) }
      },
      {
        access: 'signed-in',
        failures: [409, 429],
        body: z.strictObject({ current_password: z.string().max(1024) }),
        response: z.object({ secret: z.string(), otpauth_uri: z.string() }),
        detail: {
          tags: ['Sessions'],
          summary: 'Makes the secret of an authenticator app, which counts once a code confirms it',
        },
      },
    )
    .post(
      '/v1/auth/second-factor/confirm',
      async ({ principal, body: { code }, requestId, request }) => {
        const session = await requireSession(request, dependencies)
        const user = await requireUser(dependencies, session.userId)
        if (hasSecondFactor(user)) throw new Failure('conflict', { message: 'The second factor is confirmed already' })
        const uses = useSecondFactor(dependencies, user, code, true)
        const event = await memberEvent(dependencies, {
          type: 'member.updated',
          principal,
          requestId,
          sessionId: session.id,
          details: { user_id: user.id, changes: { second_factor: 'added' } },
        })
        await recordChange(recorder, { event, ledger: [...uses, ...endSessionsOf(user.id, session.id)] })
        return await readUser(dependencies, user.id)
      },
      {
        access: 'signed-in',
        failures: [409],
        body: z.strictObject({ code }),
        response: userSchema,
        detail: { tags: ['Sessions'], summary: "Confirms the app by a code; the person's other sessions end" },
      },
    )
    .post(
      '/v1/auth/second-factor/remove',
      async ({ principal, body: { current_password, code }, requestId, request }) => {
        const session = await requireSession(request, dependencies)
        const user = await requireUser(dependencies, session.userId)
        await provePassword(dependencies, user, {
          password: current_password,
          address: dependencies.addressOf(request),
        })
        // Who knows the password must not try all codes.
        const uses = await proveSecondFactor(dependencies, user, code)
        const event = await memberEvent(dependencies, {
          type: 'member.updated',
          principal,
          requestId,
          sessionId: session.id,
          details: { user_id: user.id, changes: { second_factor: 'removed' } },
        })
        await recordChange(recorder, { event, ledger: [...uses, removeSecret(user.id)] })
        return await readUser(dependencies, user.id)
      },
      {
        access: 'signed-in',
        failures: [409, 429],
        body: z.strictObject({ current_password: z.string().max(1024), code }),
        response: userSchema,
        detail: { tags: ['Sessions'], summary: "Takes the second factor off the caller's own account" },
      },
    )
    .delete(
      '/v1/users/:id/second-factor',
      async ({ principal, params: { id }, requestId }) => {
        const user = await requireUser(dependencies, id)
        assertMayChange(principal, user.role, user.role)
        assertNotOwnPassword(principal, id)
        const event = await memberEvent(dependencies, {
          type: 'member.updated',
          principal,
          requestId,
          details: { user_id: id, changes: { second_factor: 'removed' } },
        })
        await recordChange(recorder, { event, ledger: [removeSecret(id), ...endSessionsOf(id)] })
        return await readUser(dependencies, id)
      },
      {
        access: 'members:write',
        failures: [409],
        params: z.object({ id: z.uuid() }),
        response: userSchema,
        detail: {
          tags: ['People'],
          summary: 'Takes the second factor off an account whose app is lost; its sessions end',
        },
      },
    )
}

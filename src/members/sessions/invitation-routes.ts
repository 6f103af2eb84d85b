/**
 * `/v1/users/{id}/invitation` and `/v1/auth/invitation`: a link with which a person sets their own password, so that
 * nobody types one for somebody else. It works once, for 72 hours, and takes the place of earlier ones.
 */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { Failure } from '../../failure.ts'
import { timestamp } from '../../lib/clock.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { memberEvent, recordChange } from '../member-event.ts'
import { assertMayChange } from '../people/user.ts'
import { assertNotOwnPassword, requireUser } from '../people/user-routes.ts'
import {
  cookieOf,
  endReplacedSession,
  refuseForeignPage,
  requirePasswordsFor,
  signedIn,
  signedInSchema,
  useLink,
} from './auth-routes.ts'
import { endSetupLinks, newSetupLink, setupLinkUser } from './setup-link.ts'

const secret = z.string().max(200)

export const invitationRoutes = (dependencies: MemberDependencies) =>
  new Elysia({ name: 'invitation' })
    .use(conventions)
    .post(
      '/v1/users/:id/invitation',
      async ({ principal, params: { id }, requestId, showsSecretOf, status }) => {
        const user = await requireUser(dependencies, id)
        assertMayChange(principal, user.role, user.role)
        assertNotOwnPassword(principal, id)
        requirePasswordsFor(dependencies, user)
        if (user.status !== 'active') throw new Failure('conflict', { message: 'The person is disabled' })
        const event = await memberEvent(dependencies, {
          type: 'member.updated',
          principal,
          requestId,
          details: { user_id: id, changes: { invitation: 'replaced' } },
        })
        const consoleUrl = dependencies.consoleUrl()
        const { link, insert } = newSetupLink({ ...dependencies, kind: 'invitation', userId: id, consoleUrl })
        await recordChange(dependencies.recorder, { event, ledger: [endSetupLinks(id), insert] })
        showsSecretOf(id)
        return status(201, { invitation_url: link.url, expires_at: timestamp(link.expiresAt) })
      },
      {
        access: 'members:write',
        failures: [409],
        params: z.object({ id: z.uuid() }),
        body: z.strictObject({}),
        response: {
          201: z.object({
            invitation_url: z.string().describe('For this person alone: whoever opens it first sets the password'),
            expires_at: z.iso.datetime(),
          }),
        },
        detail: { tags: ['People'], summary: 'Makes a link with which a person sets their own password, once' },
      },
    )
    .post(
      '/v1/auth/invitation/preview',
      async ({ body: { secret }, request }) => {
        refuseForeignPage(request, dependencies)
        const { ledger, clock } = dependencies
        const userId = await setupLinkUser(ledger, 'invitation', secret, clock.now())
        const { email, name } = await requireUser(dependencies, userId)
        return { email, name }
      },
      {
        access: 'public',
        failures: [403, 503],
        body: z.strictObject({ secret }),
        response: z.object({ email: z.string(), name: z.string() }),
        detail: { tags: ['Sessions'], summary: 'Says whom an invitation is for' },
      },
    )
    .post(
      '/v1/auth/invitation/accept',
      async ({ body: { secret, password, code }, requestId, request, set }) => {
        refuseForeignPage(request, dependencies)
        const from = { address: dependencies.addressOf(request), requestId }
        const use = { kind: 'invitation' as const, secret, password, code, names: null }
        const { userId, session } = await useLink(dependencies, use, from)
        await endReplacedSession(request, dependencies)
        const answer = await signedIn(dependencies, userId, session)
        set.headers['set-cookie'] = cookieOf(dependencies, session)
        return answer
      },
      {
        access: 'public',
        failures: [401, 403, 409, 429, 503],
        body: z.strictObject({ secret, password: z.string(), code: z.string().max(20).optional() }),
        response: signedInSchema,
        detail: { tags: ['Sessions'], summary: "Uses an invitation up: sets the person's password, and signs in" },
      },
    )

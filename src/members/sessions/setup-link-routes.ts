/** `/v1/auth/setup-link`: the way on for an owner whose link has expired or is lost. */
import { z } from 'zod'
import { type AnyRoute, route } from '../../api/route.ts'
import { Failure } from '../../failure.ts'
import { timestamp } from '../../lib/clock.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { memberEvent, recordChange } from '../member-event.ts'
import { endSetupLinks, newSetupLink, ownerAwaitingSetup } from './setup-link.ts'

export const setupLinkRoutes = (dependencies: MemberDependencies): AnyRoute[] => [
  route({
    method: 'POST',
    path: '/v1/auth/setup-link',
    tag: 'Sessions',
    summary: 'Makes a one-time link that sets the password of the first owner; those made before end',
    access: 'members:write',
    body: z.strictObject({}),
    reply: z.object({ setup_url: z.string(), expires_at: z.iso.datetime() }),
    status: 201,
    async handle({ principal, requestId }) {
      // The link makes whoever has it an owner.
      if (!principal.roles.includes('owner')) {
        throw new Failure('permission_denied', { message: 'Only an owner can make a setup link' })
      }
      const { ledger, recorder, consoleUrl } = dependencies
      const userId = await ownerAwaitingSetup(ledger)
      if (userId === null) {
        throw new Failure('conflict', {
          message: 'An owner has a password already: sign in, or change it with user update',
        })
      }
      const event = await memberEvent(dependencies, {
        type: 'member.updated',
        principal,
        requestId,
        details: { user_id: userId, changes: { setup_link: 'replaced' } },
      })
      const { link, insert } = newSetupLink({ ...dependencies, userId, consoleUrl: consoleUrl() })
      await recordChange(recorder, { event, ledger: [endSetupLinks(userId), insert] })
      return { reply: { setup_url: link.url, expires_at: timestamp(link.expiresAt) }, secretOf: userId }
    },
  }),
]

/** `/v1/auth/setup-link`: the way on for an owner whose link has expired or is lost. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { Failure } from '../../failure.ts'
import { timestamp } from '../../lib/clock.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { memberEvent, recordChange } from '../member-event.ts'
import { endSetupLinks, newSetupLink, ownerAwaitingSetup } from './setup-link.ts'

export const setupLinkRoutes = (dependencies: MemberDependencies) =>
  new Elysia({ name: 'setup-link' }).use(conventions).post(
    '/v1/auth/setup-link',
    async ({ principal, requestId, showsSecretOf, status }) => {
      // The link makes whoever has it an owner.
      if (!principal.roles.includes('owner')) {
        throw new Failure('permission_denied', { message: 'Only an owner can make a setup link' })
      }
      const { ledger, recorder, consoleUrl } = dependencies
      const userId = await ownerAwaitingSetup(ledger)
      if (userId === null) {
        throw new Failure('conflict', {
          message: 'An owner has a password already: sign in, or make a link for a person with user invite',
        })
      }
      const event = await memberEvent(dependencies, {
        type: 'member.updated',
        principal,
        requestId,
        details: { user_id: userId, changes: { setup_link: 'replaced' } },
      })
      const { link, insert } = newSetupLink({ ...dependencies, kind: 'setup', userId, consoleUrl: consoleUrl() })
      await recordChange(recorder, { event, ledger: [endSetupLinks(userId), insert] })
      showsSecretOf(userId)
      return status(201, { setup_url: link.url, expires_at: timestamp(link.expiresAt) })
    },
    {
      access: 'members:write',
      body: z.strictObject({}),
      response: { 201: z.object({ setup_url: z.string(), expires_at: z.iso.datetime() }) },
      detail: {
        tags: ['Sessions'],
        summary: 'Creates a one-time link that sets the password of the first owner; earlier links end',
      },
    },
  )

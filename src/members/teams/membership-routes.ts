/** `/v1/teams/{id}/members`: who is in a team. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { pageQuery, recordPage } from '../../api/page.ts'
import { Failure } from '../../failure.ts'
import { timestamp } from '../../lib/clock.ts'
import type { Database } from '../../store/open.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { memberEvent, recordChange } from '../member-event.ts'
import { findUser } from '../people/stored-user.ts'
import { userRoles, userStatuses } from '../people/user-resource.ts'
import { revokeTokensOf } from '../revoke-tokens.ts'
import { requireVisibleTeam } from '../visibility.ts'
import { addMember, listMembers, type MembershipRow, removeMember } from './stored-team.ts'
import { requireTeam } from './team-routes.ts'

const membershipSchema = z.object({
  team_id: z.uuid(),
  user_id: z.uuid(),
  email: z.string(),
  name: z.string(),
  role: z.enum(userRoles),
  status: z.enum(userStatuses),
  added_at: z.iso.datetime(),
})

export const membershipRoutes = (dependencies: MemberDependencies) =>
  new Elysia({ name: 'membership' })
    .use(conventions)
    .get(
      '/v1/teams/:id/members',
      async ({ principal, params: { id }, query }) => {
        await requireVisibleTeam(dependencies.ledger, principal, id)
        const { records, next_cursor } = await recordPage(query, {
          filters: { team: id },
          read: (start, count) => listMembers(dependencies.ledger, { teamId: id, start, count }),
          show: (rows) => rows.map(membershipRecord),
        })
        return { members: records, next_cursor }
      },
      {
        access: 'members:read',
        params: z.object({ id: z.uuid() }),
        query: z.strictObject(pageQuery),
        response: z.object({ members: z.array(membershipSchema), next_cursor: z.string().nullable() }),
        detail: { tags: ['Teams'], summary: 'Lists the members of a team' },
      },
    )
    .post(
      '/v1/teams/:id/members',
      async ({ principal, params: { id }, body: { user_id: userId }, requestId, status }) => {
        await requireTeam(dependencies, id)
        if ((await findUser(dependencies.ledger, userId)) === null) {
          throw new Failure('invalid_parameter', { message: 'There is no such person', param: 'user_id' })
        }
        const event = await memberEvent(dependencies, {
          type: 'member.joined',
          principal,
          requestId,
          teamId: id,
          details: { team_id: id, user_id: userId },
        })
        const { delegations, clock } = dependencies
        const now = clock.now()
        const ledger = [addMember({ teamId: id, userId, createdAt: now }), ...delegations.mark(userId, now)]
        await recordChange(dependencies.recorder, { event, ledger }, alreadyMember)
        await delegations.follow({ principal, requestId }, userId)
        return status(201, await requireMember(dependencies.ledger, id, userId))
      },
      {
        access: 'members:write',
        params: z.object({ id: z.uuid() }),
        body: z.strictObject({ user_id: z.uuid() }),
        response: { 201: membershipSchema },
        detail: { tags: ['Teams'], summary: 'Adds a person to a team' },
      },
    )
    .delete(
      '/v1/teams/:id/members/:user_id',
      async ({ principal, params: { id, user_id: userId }, requestId }) => {
        const { delegations, clock } = dependencies
        const actor = { principal, requestId }
        const revoke = async () => {
          await revokeTokensOf(dependencies, actor, { userId, teamId: id })
          await delegations.follow(actor, userId)
        }
        const member = await requireMember(dependencies.ledger, id, userId).catch(async (error: unknown) => {
          // A removal that was interrupted is finished by its repeat.
          await revoke()
          throw error
        })
        const event = await memberEvent(dependencies, {
          type: 'member.left',
          principal,
          requestId,
          teamId: id,
          details: { team_id: id, user_id: userId },
        })
        const ledger = [...removeMember(id, userId), ...delegations.mark(userId, clock.now())]
        await recordChange(dependencies.recorder, { event, ledger })
        await revoke()
        return member
      },
      {
        access: 'members:write',
        params: z.object({ id: z.uuid(), user_id: z.uuid() }),
        response: membershipSchema,
        detail: {
          tags: ['Teams'],
          summary: 'Removes a person from a team and revokes the tokens bound to both; returns the last membership',
        },
      },
    )

const alreadyMember = { message: 'This person is in the team already', param: 'user_id' }

const membershipRecord = ({ id, teamId, addedAt, ...row }: MembershipRow) => ({
  ...row,
  team_id: teamId,
  user_id: id,
  added_at: timestamp(addedAt),
})

async function requireMember(ledger: Database, teamId: string, userId: string) {
  const [row] = await listMembers(ledger, { teamId, userId })
  if (row === undefined) throw new Failure('not_found', { message: 'This person is not in this team' })
  return membershipRecord(row)
}

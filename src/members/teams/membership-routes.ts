/** `/v1/teams/{id}/members`: who is in a team. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { cutPage, pageQuery, startOf } from '../../api/page.ts'
import { Failure } from '../../failure.ts'
import { timestamp } from '../../lib/clock.ts'
import type { Database } from '../../store/open.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { memberEvent, recordChange } from '../member-event.ts'
import { findUser } from '../people/user.ts'
import { userRoles, userStatuses } from '../people/user-resource.ts'
import { revokeTokensOf } from '../revoke-tokens.ts'
import { requireVisibleTeam } from '../visibility.ts'
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

interface MembershipRow {
  /** The person's. */
  id: string
  team_id: string
  email: string
  name: string
  role: (typeof userRoles)[number]
  status: (typeof userStatuses)[number]
  added_at: number
}

const selectMembers = `select u.id, m.team_id, u.email, u.name, u.role, u.status, m.created_at as added_at
  from memberships m join users u on u.id = m.user_id where m.team_id = ?`

export const membershipRoutes = (dependencies: MemberDependencies) =>
  new Elysia({ name: 'membership' })
    .use(conventions)
    .get(
      '/v1/teams/:id/members',
      async ({ principal, params: { id }, query: { limit, cursor } }) => {
        await requireVisibleTeam(dependencies.ledger, principal, id)
        const filters = { team: id }
        const found = await dependencies.ledger.read<MembershipRow>(
          `${selectMembers} and u.id > coalesce(?, '') order by u.id limit ?`,
          [id, startOf(cursor, filters), limit + 1],
        )
        const { rows, next_cursor } = cutPage(found, limit, filters)
        return { members: rows.map(membershipRecord), next_cursor }
      },
      {
        access: 'members:read',
        params: z.object({ id: z.uuid() }),
        query: z.strictObject(pageQuery),
        response: z.object({ members: z.array(membershipSchema), next_cursor: z.string().nullable() }),
        detail: { tags: ['Teams'], summary: 'Lists who is in a team' },
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
        const insert = {
          sql: 'insert into memberships (team_id, user_id, created_at) values (?, ?, ?)',
          args: [id, userId, dependencies.clock.now()],
        }
        const { delegations, clock } = dependencies
        const ledger = [insert, ...delegations.mark(userId, clock.now())]
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
        const guard = {
          sql: `insert into guards (holds) select 0 where not exists
          (select 1 from memberships where team_id = ? and user_id = ?)`,
          args: [id, userId],
        }
        const remove = { sql: 'delete from memberships where team_id = ? and user_id = ?', args: [id, userId] }
        const ledger = [guard, remove, ...delegations.mark(userId, clock.now())]
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
          summary: 'Takes a person out of a team and revokes the tokens bound to both; gives the membership that was',
        },
      },
    )

const alreadyMember = { message: 'This person is in the team already', param: 'user_id' }

const membershipRecord = ({ id, added_at, ...row }: MembershipRow) => ({
  ...row,
  user_id: id,
  added_at: timestamp(added_at),
})

async function requireMember(ledger: Database, teamId: string, userId: string) {
  const [row] = await ledger.read<MembershipRow>(`${selectMembers} and u.id = ?`, [teamId, userId])
  if (row === undefined) throw new Failure('not_found', { message: 'This person is not in this team' })
  return membershipRecord(row)
}

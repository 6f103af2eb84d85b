/** `/v1/teams`: teams and who is in them. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { requireVersion } from '../../api/entity-tag.ts'
import { cutPage, pageQuery, startOf } from '../../api/page.ts'
import { idParams } from '../../api/resource.ts'
import { Failure } from '../../failure.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { memberEvent, recordChange } from '../member-event.ts'
import { requireVisibleTeam, visibleTeams } from '../visibility.ts'
import { addTeam, changeTeamName, deleteTeam, findTeam, isInUse, listTeams } from './stored-team.ts'
import { defaultTeamName, type TeamRow, teamRecord } from './team.ts'
import { teamBody, teamSchema } from './team-resource.ts'

export const teamRoutes = (dependencies: MemberDependencies) => {
  const { ledger } = dependencies
  return new Elysia({ name: 'team' })
    .use(conventions)
    .get(
      '/v1/teams',
      async ({ principal, query: { limit, cursor } }) => {
        const start = startOf(cursor, { list: 'teams' }) ?? ''
        const found = await listTeams(ledger, { visible: visibleTeams(principal), start, count: limit + 1 })
        const { rows, next_cursor } = cutPage(found, limit, { list: 'teams' })
        return { teams: rows.map(teamRecord), next_cursor }
      },
      {
        access: 'members:read',
        query: z.strictObject(pageQuery),
        response: z.object({ teams: z.array(teamSchema), next_cursor: z.string().nullable() }),
        detail: { tags: ['Teams'], summary: 'Lists teams, in the order they were made' },
      },
    )
    .post(
      '/v1/teams',
      async ({ principal, body: { name }, requestId, status }) => {
        const id = dependencies.newId()
        const createdAt = dependencies.clock.now()
        const details = { team_id: id, name }
        const event = await memberEvent(dependencies, {
          type: 'member.team_created',
          principal,
          requestId,
          teamId: id,
          details,
        })
        await recordChange(dependencies.recorder, { event, ledger: [addTeam({ id, name, createdAt })] }, nameTaken)
        return status(201, await answer(dependencies, id))
      },
      {
        access: 'members:write',
        body: teamBody,
        versioned: true,
        response: { 201: teamSchema },
        detail: { tags: ['Teams'], summary: 'Makes a team' },
      },
    )
    .get(
      '/v1/teams/:id',
      async ({ principal, params: { id } }) => {
        await requireVisibleTeam(dependencies.ledger, principal, id)
        return await answer(dependencies, id)
      },
      {
        access: 'members:read',
        params: idParams,
        versioned: true,
        response: teamSchema,
        detail: { tags: ['Teams'], summary: 'One team' },
      },
    )
    .patch(
      '/v1/teams/:id',
      async ({ principal, params: { id }, body: { name }, requestId, request: { headers } }) => {
        const before = await requireTeam(dependencies, id)
        requireVersion(headers, before.version)
        if (before.name === name) return await answer(dependencies, id)
        requireNotDefault(before)
        const event = await memberEvent(dependencies, {
          type: 'member.team_updated',
          principal,
          requestId,
          teamId: id,
          details: { team_id: id, changes: { name: { from: before.name, to: name } } },
        })
        await recordChange(dependencies.recorder, { event, ledger: changeTeamName(before, name) }, nameTaken)
        return await answer(dependencies, id)
      },
      {
        access: 'members:write',
        params: idParams,
        body: teamBody,
        versioned: true,
        ifMatch: true,
        response: teamSchema,
        detail: { tags: ['Teams'], summary: 'Renames a team' },
      },
    )
    .delete(
      '/v1/teams/:id',
      async ({ principal, params: { id }, requestId, request: { headers } }) => {
        const team = await requireTeam(dependencies, id)
        requireVersion(headers, team.version)
        requireNotDefault(team)
        const now = dependencies.clock.now()
        if (await isInUse(dependencies.ledger, id, now)) throw new Failure('conflict', stillInUse)
        const event = await memberEvent(dependencies, {
          type: 'member.team_deleted',
          principal,
          requestId,
          teamId: id,
          details: { team_id: id, name: team.name },
        })
        await recordChange(dependencies.recorder, { event, ledger: deleteTeam(team, now) }, stillInUse)
        return teamRecord(team)
      },
      {
        access: 'members:write',
        params: idParams,
        ifMatch: true,
        response: teamSchema,
        detail: {
          tags: ['Teams'],
          summary: 'Deletes a team that has neither members nor tokens in force; gives its last record',
        },
      },
    )
}

const nameTaken = { message: 'There is a team of this name already', param: 'name' }
const stillInUse = { message: 'The team still has members or tokens in force: remove or revoke them first' }

function requireNotDefault({ name }: TeamRow): void {
  if (name !== defaultTeamName) return
  throw new Failure('conflict', { message: `The team ${defaultTeamName} owns what has no other owner: it stays` })
}

/** The team of this id. Throws `not_found`. */
export async function requireTeam({ ledger }: Pick<MemberDependencies, 'ledger'>, id: string): Promise<TeamRow> {
  const row = await findTeam(ledger, id)
  if (row === null) throw new Failure('not_found', { message: 'There is no such team' })
  return row
}

async function answer(dependencies: MemberDependencies, id: string) {
  const team = await requireTeam(dependencies, id)
  return teamRecord(team)
}

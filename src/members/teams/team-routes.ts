/** `/v1/teams`: teams and who is in them. */
import { z } from 'zod'
import { entityTag, requireVersion } from '../../api/entity-tag.ts'
import { cutPage, pageQuery, startOf } from '../../api/page.ts'
import { type AnyRoute, route } from '../../api/route.ts'
import { Failure } from '../../failure.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { memberEvent, recordChange } from '../member-event.ts'
import { displayName } from '../people/user.ts'
import { requireVisibleTeam, visibleTeams } from '../visibility.ts'
import { addTeam, changeTeamName, deleteTeam, findTeam, isInUse, listTeams } from './stored-team.ts'
import { defaultTeamName, type TeamRow, teamRecord, teamSchema } from './team.ts'

const idParams = z.object({ id: z.uuid() })
const nameBody = z.strictObject({ name: displayName })

export const teamRoutes = (dependencies: MemberDependencies): AnyRoute[] => [
  getTeams(dependencies),
  createTeam(dependencies),
  getTeam(dependencies),
  renameTeam(dependencies),
  removeTeam(dependencies),
]

const getTeams = ({ ledger }: MemberDependencies): AnyRoute =>
  route({
    method: 'GET',
    path: '/v1/teams',
    tag: 'Teams',
    summary: 'Lists teams, in the order they were made',
    access: 'members:read',
    query: z.object(pageQuery),
    reply: z.object({ teams: z.array(teamSchema), next_cursor: z.string().nullable() }),
    async handle({ principal, query: { limit, cursor } }) {
      const start = startOf(cursor, { list: 'teams' }) ?? ''
      const found = await listTeams(ledger, { visible: visibleTeams(principal), start, count: limit + 1 })
      const { rows, next_cursor } = cutPage(found, limit, { list: 'teams' })
      return { reply: { teams: rows.map(teamRecord), next_cursor } }
    },
  })

const createTeam = (dependencies: MemberDependencies): AnyRoute =>
  route({
    method: 'POST',
    path: '/v1/teams',
    tag: 'Teams',
    summary: 'Makes a team',
    access: 'members:write',
    body: nameBody,
    reply: teamSchema,
    status: 201,
    async handle({ principal, body: { name }, requestId }) {
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
      return await answer(dependencies, id)
    },
  })

const getTeam = (dependencies: MemberDependencies): AnyRoute =>
  route({
    method: 'GET',
    path: '/v1/teams/{id}',
    tag: 'Teams',
    summary: 'One team',
    access: 'members:read',
    params: idParams,
    reply: teamSchema,
    async handle({ principal, params: { id } }) {
      await requireVisibleTeam(dependencies.ledger, principal, id)
      return await answer(dependencies, id)
    },
  })

const renameTeam = (dependencies: MemberDependencies): AnyRoute =>
  route({
    method: 'PATCH',
    path: '/v1/teams/{id}',
    tag: 'Teams',
    summary: 'Renames a team',
    access: 'members:write',
    params: idParams,
    body: nameBody,
    reply: teamSchema,
    async handle({ principal, params: { id }, body: { name }, headers, requestId }) {
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
  })

const removeTeam = (dependencies: MemberDependencies): AnyRoute =>
  route({
    method: 'DELETE',
    path: '/v1/teams/{id}',
    tag: 'Teams',
    summary: 'Deletes a team that has neither members nor tokens in force; gives its last record',
    access: 'members:write',
    params: idParams,
    reply: teamSchema,
    async handle({ principal, params: { id }, headers, requestId }) {
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
      return { reply: teamRecord(team) }
    },
  })

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
  return { reply: teamRecord(team), headers: { etag: entityTag(team.version) } }
}

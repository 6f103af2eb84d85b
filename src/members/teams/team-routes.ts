/** `/v1/teams`: teams and who is in them. */
import { z } from 'zod'
import { entityTag, requireVersion } from '../../api/entity-tag.ts'
import { cutPage, pageQuery, startOf } from '../../api/page.ts'
import { idParams } from '../../api/resource.ts'
import { type AnyRoute, route } from '../../api/route.ts'
import { Failure } from '../../failure.ts'
import type { Statement } from '../../store/statement.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { memberEvent, recordChange } from '../member-event.ts'
import { requireVisibleTeam, visibleTeams } from '../visibility.ts'
import { defaultTeamName, findTeam, type TeamRow, teamColumns, teamRecord } from './team.ts'
import { teamBody, teamSchema } from './team-resource.ts'

export const teamRoutes = (dependencies: MemberDependencies): AnyRoute[] => [
  listTeams(dependencies),
  createTeam(dependencies),
  getTeam(dependencies),
  renameTeam(dependencies),
  deleteTeam(dependencies),
]

const listTeams = ({ ledger }: MemberDependencies): AnyRoute =>
  route({
    method: 'GET',
    path: '/v1/teams',
    tag: 'Teams',
    summary: 'Lists teams, in the order they were made',
    access: 'members:read',
    query: z.object(pageQuery),
    reply: z.object({ teams: z.array(teamSchema), next_cursor: z.string().nullable() }),
    async handle({ principal, query: { limit, cursor } }) {
      const visible = visibleTeams(principal)
      const found = await ledger.read<TeamRow>(
        `select ${teamColumns} from teams t where t.id > coalesce(?, '') and ${visible.sql} order by t.id limit ?`,
        [startOf(cursor, { list: 'teams' }), ...visible.args, limit + 1],
      )
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
    body: teamBody,
    reply: teamSchema,
    status: 201,
    async handle({ principal, body: { name }, requestId }) {
      const id = dependencies.newId()
      const insert: Statement = {
        sql: 'insert into teams (id, name, created_at) values (?, ?, ?)',
        args: [id, name, dependencies.clock.now()],
      }
      const details = { team_id: id, name }
      const event = await memberEvent(dependencies, {
        type: 'member.team_created',
        principal,
        requestId,
        teamId: id,
        details,
      })
      await recordChange(dependencies.recorder, { event, ledger: [insert] }, nameTaken)
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
    body: teamBody,
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
      const update: Statement = {
        sql: 'update teams set name = ?, version = version + 1 where id = ?',
        args: [name, id],
      }
      const ledger = [versionGuard(before), update]
      await recordChange(dependencies.recorder, { event, ledger }, nameTaken)
      return await answer(dependencies, id)
    },
  })

const deleteTeam = (dependencies: MemberDependencies): AnyRoute =>
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
      const inUse = inUseOf(id, dependencies.clock.now())
      if ((await dependencies.ledger.read(inUse.sql, inUse.args)).length > 0) throw new Failure('conflict', stillInUse)
      const event = await memberEvent(dependencies, {
        type: 'member.team_deleted',
        principal,
        requestId,
        teamId: id,
        details: { team_id: id, name: team.name },
      })
      const guard = { sql: `insert into guards (holds) select 0 where exists (${inUse.sql})`, args: inUse.args }
      const remove = { sql: 'delete from teams where id = ?', args: [id] }
      await recordChange(dependencies.recorder, { event, ledger: [versionGuard(team), guard, remove] }, stillInUse)
      return { reply: teamRecord(team) }
    },
  })

const nameTaken = { message: 'There is a team of this name already', param: 'name' }
const stillInUse = { message: 'The team still has members or tokens in force: remove or revoke them first' }

/** A row for whatever still holds on to a team. */
const inUseOf = (teamId: string, now: number): Statement => ({
  sql: `select 1 from memberships where team_id = ?
    union all select 1 from tokens
      where (team_id = ? or (owner_kind = 'team' and owner_id = ?)) and revoked_at is null
        and (rotated_at is null or rotated_at > ?) and (expires_at is null or expires_at > ?)`,
  args: [teamId, teamId, teamId, now, now],
})

const versionGuard = ({ id, version }: TeamRow): Statement => ({
  sql: 'insert into guards (holds) select 0 where not exists (select 1 from teams where id = ? and version = ?)',
  args: [id, version],
})

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

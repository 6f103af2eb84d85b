/** `/v1/teams`: teams and who is in them. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { requireVersion } from '../../api/entity-tag.ts'
import { cutPage, pageQuery, startOf } from '../../api/page.ts'
import { idParams } from '../../api/resource.ts'
import { Failure } from '../../failure.ts'
import type { Statement } from '../../store/statement.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { memberEvent, recordChange } from '../member-event.ts'
import { requireVisibleTeam, visibleTeams } from '../visibility.ts'
import { defaultTeamName, findTeam, type TeamRow, teamColumns, teamRecord } from './team.ts'
import { teamBody, teamSchema } from './team-resource.ts'

export const teamRoutes = (dependencies: MemberDependencies) => {
  const { ledger } = dependencies
  return new Elysia({ name: 'team' })
    .use(conventions)
    .get(
      '/v1/teams',
      async ({ principal, query: { limit, cursor } }) => {
        const visible = visibleTeams(principal)
        const found = await ledger.read<TeamRow>(
          `select ${teamColumns} from teams t where t.id > coalesce(?, '') and ${visible.sql} order by t.id limit ?`,
          [startOf(cursor, { list: 'teams' }), ...visible.args, limit + 1],
        )
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
        const update: Statement = {
          sql: 'update teams set name = ?, version = version + 1 where id = ?',
          args: [name, id],
        }
        const ledger = [versionGuard(before), update]
        await recordChange(dependencies.recorder, { event, ledger }, nameTaken)
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
        const inUse = inUseOf(id, dependencies.clock.now())
        if ((await dependencies.ledger.read(inUse.sql, inUse.args)).length > 0)
          throw new Failure('conflict', stillInUse)
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
  return teamRecord(team)
}

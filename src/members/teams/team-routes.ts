/** `/v1/teams`: teams and who is in them. */
import { requireVersion } from '../../api/entity-tag.ts'
import { recordPage } from '../../api/page.ts'
import { resourceRoutes } from '../../api/resource-routes.ts'
import { Failure } from '../../failure.ts'
import type { MemberDependencies } from '../dependencies.ts'
import { memberEvent, recordChange } from '../member-event.ts'
import { requireVisibleTeam, visibleTeams } from '../visibility.ts'
import { addTeam, changeTeamName, deleteTeam, findTeam, isInUse, listTeams } from './stored-team.ts'
import { defaultTeamName, type TeamRow, teamRecord } from './team.ts'
import { teamResource } from './team-resource.ts'

export const teamRoutes = (dependencies: MemberDependencies) => {
  const { ledger, recorder, clock, newId } = dependencies
  return resourceRoutes(teamResource, {
    list: ({ name, ...page }, { principal }) =>
      recordPage(page, {
        filters: { list: 'teams', name },
        read: (start, count) => listTeams(ledger, { name, visible: visibleTeams(principal), start, count }),
        show: (rows) => rows.map(teamRecord),
      }),
    async get(id, { principal }) {
      await requireVisibleTeam(ledger, principal, id)
      return await answer(dependencies, id)
    },
    async create({ name }, { principal, requestId }) {
      const id = newId()
      const details = { team_id: id, name }
      const event = await memberEvent(dependencies, {
        type: 'member.team_created',
        principal,
        requestId,
        teamId: id,
        details,
      })
      await recordChange(recorder, { event, ledger: [addTeam({ id, name, createdAt: clock.now() })] }, nameTaken)
      return await answer(dependencies, id)
    },
    async update(id, { name }, { principal, requestId, headers }) {
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
      await recordChange(recorder, { event, ledger: changeTeamName(before, name) }, nameTaken)
      return await answer(dependencies, id)
    },
    async remove(id, { principal, requestId, headers }) {
      const team = await requireTeam(dependencies, id)
      requireVersion(headers, team.version)
      requireNotDefault(team)
      const now = clock.now()
      if (await isInUse(ledger, id, now)) throw new Failure('conflict', stillInUse)
      const event = await memberEvent(dependencies, {
        type: 'member.team_deleted',
        principal,
        requestId,
        teamId: id,
        details: { team_id: id, name: team.name },
      })
      await recordChange(recorder, { event, ledger: deleteTeam(team, now) }, stillInUse)
      return teamRecord(team)
    },
  })
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

import { z } from 'zod'
import { refersTo } from '../../../../src/api/resource.ts'
import { userResource } from '../../../../src/members/people/user-resource.ts'
import { type Call, kindOf, type Shown, type Situation } from '../kind.ts'

const names = z.array(z.string())
const teamIds = z.array(z.uuid()).describe('The teams they are in').meta(refersTo('/v1/teams')).optional()

/** Who is made disabled, and teams that are joined or left. */
function more({ wanted, present, id, idOf }: Situation): Call[] {
  const isDisabled = present === null && wanted.status === 'disabled'
  const disable: Call = { method: 'PATCH', path: `${userResource.path}/${id}`, body: { status: 'disabled' } }
  return [...(isDisabled ? [disable] : []), ...(wanted.teams === undefined ? [] : memberships())]

  function memberships(): Call[] {
    const [want, have] = [names.parse(wanted.teams), names.parse(present?.teams ?? [])]
    const members = (team: string) => `/v1/teams/${idOf('/v1/teams', team)}/members`
    const joins = want.filter((team) => !have.includes(team))
    const leaves = have.filter((team) => !want.includes(team))
    return [
      ...joins.map((team): Call => ({ method: 'POST', path: members(team), body: { user_id: id } })),
      ...leaves.map((team): Call => ({ method: 'DELETE', path: `${members(team)}/${id}` })),
    ]
  }
}

/** Who is taken away leaves the teams, which could not be deleted otherwise. */
function remove({ status, role, team_ids: teams }: Shown, id: string): Call[] {
  if (role === 'owner') return []
  const leaves = names.parse(teams).map((team): Call => ({ method: 'DELETE', path: `/v1/teams/${team}/members/${id}` }))
  const disable: Call = { method: 'PATCH', path: `${userResource.path}/${id}`, body: { status: 'disabled' } }
  return [...leaves, ...(status === 'disabled' ? [] : [disable])]
}

/**
 * By their e-mail address. A person without `teams` stays in those they are in; nobody is deleted, `--prune` disables,
 * owners excepted.
 * No file has a password: people are invited, or sign in at an identity provider.
 */
export const users = kindOf(userResource, {
  key: 'email',
  omit: ['password'],
  further: { team_ids: teamIds },
  absent: { status: 'active' },
  kept: ['teams'],
  more,
  remove,
})

/** What the token, team and person of an event are called; null where one has no name or the caller may not know it. */
import { request } from '../../../api/request.ts'
import { api, type Event } from '../../../api/routes.ts'
import { useLoaded } from '../../../parts/loaded.tsx'
import { hasPermission } from '../../../session.ts'
import { teamName, useTeams } from '../../team-names.ts'

interface Names {
  token: string | null
  team: string | null
  user: string | null
}

export function useNames({ event_attribution: { token_id, team_id, user_id } }: Event): Names {
  const teams = useTeams()
  const found = useLoaded(`names of ${token_id} ${user_id}`, async (signal) => {
    const [token, user] = await Promise.all([
      token_id !== null && hasPermission('tokens:read')
        ? nameOrNull(api('GET /v1/tokens/{id}', { params: { id: token_id }, signal }))
        : null,
      user_id !== null && hasPermission('members:read')
        ? nameOrNull(request<{ name: string }>('GET', `/v1/users/${encodeURIComponent(user_id)}`, { signal }))
        : null,
    ])
    return { token, user }
  })
  return {
    token: found.value?.token ?? null,
    user: found.value?.user ?? null,
    team: team_id === null || teams === null ? null : teamName(teams, team_id),
  }
}

/** A name is a help and nothing more: what is gone goes by its id. */
const nameOrNull = (reading: Promise<{ name: string }>): Promise<string | null> =>
  reading.then(
    ({ name }) => name,
    () => null,
  )

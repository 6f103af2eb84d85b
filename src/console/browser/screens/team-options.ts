/** The teams as what can be chosen. Their names are known from then on to all that shows them. */
import type { Finder, Options } from '../parts/forms/choice.tsx'
import type { Filter } from '../parts/forms/filters.tsx'
import { type Loaded, useLoaded } from '../parts/loaded.tsx'
import { hasPermission } from '../session.ts'
import { recordChoices } from './catalog/record-options.ts'
import { learnNames } from './record-name.tsx'

/** None without the permission to read them. */
export const useTeamOptions = (): Loaded<Options | Finder> =>
  useLoaded<Options | Finder>('team choices', async (signal) => {
    if (!hasPermission('members:read')) return []
    return await recordChoices('/v1/teams', 'id', {
      signal,
      read: (teams) =>
        learnNames(teams.map(({ id, name }) => ({ id: String(id), name: String(name), readable: true }))),
    })
  })

/** A filter by team. */
export const teamFilter = (name: string, teams: Options | Finder = []): Filter => ({
  name,
  label: 'Team',
  ...('search' in teams ? { finder: teams } : { options: teams.map(([id, label]) => [id, label] as const) }),
})

/** The names of teams, read once for all that shows them. Without permission, shows whether a team is the person's. */
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { everyPage } from '../api/every-page.ts'
import { api, type Team } from '../api/routes.ts'
import { shortId } from '../formats.ts'
import { useLoaded } from '../parts/loaded.tsx'
import { hasPermission } from '../session.ts'
import { withoutName } from './record-name.tsx'

const teams = signal<readonly Team[] | null>(null)
let asked: Promise<void> | null = null

/** The teams there are; null until they are known. */
export function useTeams(): readonly Team[] | null {
  useEffect(() => {
    if (hasPermission('members:read')) void readTeams()
  }, [])
  return teams.value
}

export async function readTeams({ again = false } = {}): Promise<void> {
  if (again) asked = null
  asked ??= everyPage(
    (query) => api('GET /v1/teams', { query }),
    (page) => page.teams,
  ).then(
    (found) => {
      teams.value = found
    },
    () => {
      // Names are a help and nothing more: ids are shown instead, and the next screen asks again.
      asked = null
    },
  )
  await asked
}

/** The teams as what can be chosen; null while they are on their way. */
export function useTeamOptions(): (readonly [id: string, name: string])[] | null {
  const reading = useLoaded('team names', async () => {
    if (hasPermission('members:read')) await readTeams()
  })
  if (teams.value === null && reading.loading) return null
  return (teams.value ?? []).map(({ id, name }) => [id, name] as const)
}

export const teamName = (known: readonly Team[] | null, id: string | null | undefined): string =>
  id == null
    ? '–'
    : hasPermission('members:read')
      ? known === null
        ? '…'
        : (known.find((team) => team.id === id)?.name ?? shortId(id))
      : withoutName('teams', id)

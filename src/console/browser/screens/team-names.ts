/**
 * The names of teams for all that shows them: those of the first page are read at once, and any other when its name is
 * first shown. Without permission, shows whether a team is the person's.
 */
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { api } from '../api/routes.ts'
import { shortId } from '../formats.ts'
import type { Finder, Options } from '../parts/forms/choice.tsx'
import { useLoaded } from '../parts/loaded.tsx'
import { hasPermission } from '../session.ts'
import { recordChoices } from './catalog/record-options.ts'
import { withoutName } from './record-name.tsx'

export type TeamNames = ReadonlyMap<string, string>

const names = signal<TeamNames | null>(null)
const asked = new Set<string>()
let reading: Promise<void> | null = null

/** The names that are known; null until the first page was read. */
export function useTeams(): TeamNames | null {
  useEffect(() => {
    if (hasPermission('members:read')) void readTeams()
  }, [])
  return names.value
}

const know = (found: readonly (readonly [id: string, name: string])[]): void => {
  names.value = new Map([...(names.peek() ?? []), ...found])
}

async function readTeams(): Promise<void> {
  reading ??= api('GET /v1/teams', { query: { limit: 100 } }).then(
    ({ teams }) => know(teams.map(({ id, name }) => [id, name])),
    () => {
      // Names are a help and nothing more: ids are shown instead, and the next screen asks again.
      reading = null
    },
  )
  await reading
}

/** Asks once for the name of a team that is not on the first page. */
function readTeam(id: string): void {
  if (asked.has(id)) return
  asked.add(id)
  api('GET /v1/teams/{id}', { params: { id } }).then(
    ({ name }) => know([[id, name]]),
    // It was deleted, or is another's: its id is shown.
    () => know([[id, shortId(id)]]),
  )
}

/** The teams as what can be chosen; null while they are on their way. */
export function useTeamOptions(): Options | Finder | null {
  const found = useLoaded('team choices', async () =>
    hasPermission('members:read') ? await recordChoices('/v1/teams', 'id') : [],
  )
  return found.value ?? (found.loading ? null : [])
}

export function teamName(known: TeamNames | null, id: string | null | undefined): string {
  if (id == null) return '–'
  if (!hasPermission('members:read')) return withoutName('teams', id)
  const name = known?.get(id)
  if (name === undefined && known !== null) readTeam(id)
  return name ?? '…'
}

/** The rows of managed settings (managed-settings/README.md), those that count first come first. */
import type { Database } from 'bun:sqlite'
import type { ManagedSettings } from '../protocol/worker.ts'

interface Row {
  id: string
  team_ids: string
  settings: string
  checksum: string
}

export const readManagedSettings = (database: Database): ManagedSettings[] =>
  database
    .query<Row, []>(
      'select id, team_ids, settings, checksum from managed_settings where deleted = 0 order by priority, name, id',
    )
    .all()
    .map(({ id, team_ids, settings, checksum }) => ({ id, teamIds: JSON.parse(team_ids), settings, checksum }))

/** Reads the schema version of a state database, and the oldest product version that can read it, beside its writer. */
import { openReadOnly } from '../store/open-beside.ts'

export type StateFacts = { kind: 'read'; version: number; readsFrom: string } | { kind: 'unreadable'; reason: string }

export function readVersion(file: string): StateFacts {
  try {
    using database = openReadOnly(file)
    const head = database
      .query<{ version: number; readsFrom: string }, []>(
        'select version, reads_from as readsFrom from state_head where id = 1',
      )
      .get()
    return head === null ? { kind: 'unreadable', reason: 'it has no head' } : { kind: 'read', ...head }
  } catch (error) {
    return { kind: 'unreadable', reason: error instanceof Error ? error.message : 'it cannot be opened' }
  }
}

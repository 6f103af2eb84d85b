/**
 * Tokens that a new copy of the state would accept although they were refused before, because the primary was restored
 * from an older copy or replaced (fleet/README.md rule R1). This host knows its former copy and the revocations in its
 * outbox. Both are compared with the new copy, token by token.
 *
 * A token that was only narrowed is found only if its revocation entry is still in the outbox.
 */
import { Database } from 'bun:sqlite'
import type { Head } from '../../store/propagation.ts'
import type { RevocationRecord } from '../outbox/record.ts'

const pageRows = 2000

export interface RevocationEntry {
  version: number
  hash: string
}

export interface Lost {
  /** The history of the versions. */
  history: string
  revocations: RevocationEntry[]
}

/**
 * Both files must be valid; other processes may write to them. Pauses between pages, so that no read blocks for long.
 */
export async function findTokensToRevokeAgain(
  built: string,
  former: string | null,
  records: readonly RevocationRecord[],
): Promise<Lost[]> {
  const after = new Database(built, { readonly: true })
  const before = former === null ? null : new Database(former, { readonly: true })
  try {
    const lost = new Map<string, Map<string, number>>()
    const isReadmitted = readmittedIn(after)
    const add = (history: string, version: number, hash: string) => {
      if (!isReadmitted(history, version, hash)) return
      const found = lost.get(history) ?? new Map<string, number>()
      lost.set(history, found.set(hash, Math.max(version, found.get(hash) ?? 0)))
    }
    for (const { position, since = position.version - 1, hashes } of records) {
      // Combined revocations have versions up to the last one. A token with the first version is not behind.
      for (const hash of hashes) add(position.history, since + 1, hash)
    }
    if (before !== null && !continues(before, after)) await eachRefused(before, add)
    return [...lost].map(([history, found]) => ({
      history,
      revocations: [...found].map(([hash, version]) => ({ hash, version })),
    }))
  } finally {
    after.close()
    before?.close()
  }
}

/** Whether the new copy accepts a token at a version from before its revocation. */
function readmittedIn(database: Database) {
  const { history: present } = headOf(database)
  const token = database.query<{ version: number }, [string]>(
    `select version from tokens where hash = ?1 and deleted = 0 and revoked_at is null and rotated_at is null
      union all select version from oauth_tokens where hash = ?1 and deleted = 0 and revoked_at is null`,
  )
  return (history: string, version: number, hash: string): boolean => {
    const found = token.get(hash)
    return found !== null && (history !== present || found.version < version)
  }
}

/**
 * Whether the new copy contains the newest change of the former one, and so all earlier ones: then nothing was lost.
 */
function continues(before: Database, after: Database): boolean {
  const [from, to] = [headOf(before), headOf(after)]
  if (from.history !== to.history || from.version > to.version) return false
  const newest = before
    .query<{ event_id: string; version: number }, []>(
      'select event_id, version from change_log where applied = 1 order by version desc limit 1',
    )
    .get()
  if (newest === null) return from.version < to.version || from.nonce === to.nonce
  const same = after.query<{ version: number }, [string]>('select version from change_log where event_id = ?')
  return same.get(newest.event_id)?.version === newest.version
}

async function eachRefused(
  database: Database,
  add: (history: string, version: number, hash: string) => void,
): Promise<void> {
  const { history } = headOf(database)
  for (const refused of [
    'tokens where (revoked_at is not null or rotated_at is not null or deleted = 1)',
    'oauth_tokens where (revoked_at is not null or deleted = 1)',
  ]) {
    const page = database.query<{ id: string; hash: string; version: number }, [string, number]>(
      `select id, hash, version from ${refused} and id > ? order by id limit ?`,
    )
    let rows: ReturnType<typeof page.all> = []
    do {
      rows = page.all(rows.at(-1)?.id ?? '', pageRows)
      for (const { hash, version } of rows) add(history, version, hash)
      await new Promise((resolve) => setImmediate(resolve))
    } while (rows.length === pageRows)
  }
}

function headOf(database: Database): Head {
  const head = database.query<Head, []>('select version, nonce, history from state_head where id = 1').get()
  if (head === null) throw new RangeError('The state has no head')
  return head
}

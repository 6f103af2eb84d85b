/**
 * A kernel lock on a directory, held until the process ends in any way. Bun has no flock; SQLite's exclusive lock on
 * a file of its own is the same kernel lock (POSIX advisory), and needs no native code of ours.
 */
import { Database } from 'bun:sqlite'
import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'

/** Keeps the locks' files open: the garbage collector would close an unreferenced one and release its lock. */
const held = new Set<Database>()

export const lockFile = 'lock'

/** Takes the lock, creating the directory (0700) if it is missing. Null if another process holds it. */
export function lockDirectory(directory: string): { release(): void } | null {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const path = join(directory, lockFile)
  const database = new Database(path, { create: true })
  chmodSync(path, 0o600)
  try {
    database.run('pragma busy_timeout = 0')
    database.run('begin exclusive')
  } catch (error) {
    database.close()
    if (error instanceof Error && 'code' in error && String(error.code).startsWith('SQLITE_BUSY')) return null
    throw error
  }
  held.add(database)
  return {
    release() {
      held.delete(database)
      database.close()
    },
  }
}

/**
 * Files that are created once and never changed, such as keys: they appear whole, even if several processes create one
 * at the same time.
 */
import { chmodSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'

/** The text of a file (mode 0600), which `make` creates if it is missing; an existing file is never replaced. */
export function readOrMake(path: string, make: () => string): string {
  const present = readIfThere(path)
  if (present !== null) return present
  // Linked into place whole: of two processes that start at once, the second uses the first one's file.
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, make(), { mode: 0o600, flush: true })
  try {
    linkSync(draft, path)
    chmodSync(path, 0o600)
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
  } finally {
    rmSync(draft, { force: true })
  }
  return readFileSync(path, 'utf8')
}

/** Null if there is no such file. */
export function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null
    throw error
  }
}

const hasCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code

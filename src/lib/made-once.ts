/** Files that are made once and kept for good, such as keys: whole or not there, whoever else makes them at the time. */
import { chmodSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'

/** The text of a file (mode 0600), which `make` writes where there is none; what was there before always stands. */
export function readOrMake(path: string, make: () => string): string {
  const present = readIfThere(path)
  if (present !== null) return present
  // Linked into place whole: of two processes that start at once the second finds the file and takes what it says.
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

/** Null where there is no such file. */
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

/**
 * The newest checkpoint that a process has seen, in a file outside the databases (events/proof/README.md), so that
 * whoever rewrites these does not reach it. Each gateway has one, and so has a control plane, which compares every
 * verification with its own.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { hasRegressed, signedSchema } from './checkpoint.ts'
import type { Signed } from './checkpoint-key.ts'

/** Null where there is none. */
export function readKnownCheckpoint(path: string): Signed | null {
  if (!existsSync(path)) return null
  try {
    return signedSchema.parse(JSON.parse(readFileSync(path, 'utf8')))
  } catch {
    // Written by rename, so never in part. An invalid file counts as none.
    return null
  }
}

export function rememberCheckpoint(path: string, { body, key_id, signature }: Signed): void {
  writeFileSync(`${path}.new`, JSON.stringify({ body, key_id, signature }), { mode: 0o600, flush: true })
  renameSync(`${path}.new`, path)
}

/** Stores what was found if it continues the known one. Otherwise keeps that and says what is wrong. */
export function checkCheckpoint(path: string, found: Signed | null): string | null {
  const seen = readKnownCheckpoint(path)
  if (seen?.signature === found?.signature) return null
  const wrong = seen === null ? null : hasRegressed(seen.body, found?.body ?? '')
  if (wrong === null && found !== null) rememberCheckpoint(path, found)
  return wrong
}

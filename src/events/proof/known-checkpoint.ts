/**
 * The newest checkpoint that a process has seen, in a file outside the databases (events/proof/README.md): whoever
 * rewrites these, checkpoints and all, does not reach it. Gateways keep one each, and so does a control plane, which
 * holds every verification against its own.
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
    // Written by rename, so never half a file: what is not a checkpoint is as good as none.
    return null
  }
}

export function rememberCheckpoint(path: string, { body, key_id, signature }: Signed): void {
  writeFileSync(`${path}.new`, JSON.stringify({ body, key_id, signature }), { mode: 0o600, flush: true })
  renameSync(`${path}.new`, path)
}

/** Keeps what was found where it goes on from what was seen; otherwise leaves that, and says what is wrong. */
export function checkCheckpoint(path: string, found: Signed | null): string | null {
  const seen = readKnownCheckpoint(path)
  if (seen?.signature === found?.signature) return null
  const wrong = seen === null ? null : hasRegressed(seen.body, found?.body ?? '')
  if (wrong === null && found !== null) rememberCheckpoint(path, found)
  return wrong
}

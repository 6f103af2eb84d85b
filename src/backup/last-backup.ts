/** When a backup was last made of a data directory: a file in it, which `doctor` reads. */
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { readIfThere } from '../lib/made-once.ts'

const name = 'last-backup.json'
const schema = z.object({ made_at: z.iso.datetime(), file: z.string() })

export function noteBackup(data: string, made: z.infer<typeof schema>): void {
  const path = join(data, name)
  writeFileSync(`${path}.new`, JSON.stringify(made), { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

/** Null where none was made, or the file cannot be read. */
export function lastBackup(data: string): { madeAt: number; file: string } | null {
  const text = readIfThere(join(data, name))
  if (text === null) return null
  try {
    const { made_at, file } = schema.parse(JSON.parse(text))
    return { madeAt: Date.parse(made_at), file }
  } catch {
    // Damaged: as good as none.
    return null
  }
}

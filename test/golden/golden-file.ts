/** What tests hold against files of this folder; `UPDATE_GOLDEN=1` writes the files anew. */
import { expect } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const update = process.env.UPDATE_GOLDEN === '1'

/** Compares a text with the golden file at this path below `test/golden`. */
export async function expectGolden(path: string, made: string): Promise<void> {
  const file = join(import.meta.dir, path)
  if (update) await Bun.write(file, made)
  expect([path, existsSync(file) ? await Bun.file(file).text() : null]).toEqual([path, made])
}

export const pretty = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

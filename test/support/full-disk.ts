/** A disk without room: a ballast file that takes all there is. */
import { closeSync, openSync, writeSync } from 'node:fs'

/** Writes to the file until nothing more fits. */
export function fillDisk(path: string): void {
  const file = openSync(path, 'a')
  try {
    for (const size of [1024 * 1024, 4096, 1]) {
      const block = new Uint8Array(size)
      try {
        while (writeSync(file, block) === size);
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error
      }
    }
  } finally {
    closeSync(file)
  }
}

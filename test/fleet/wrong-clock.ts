/**
 * The wall clock of one host, wrong by so many seconds: a library that stands before the C library's own answers to
 * what time it is (`LD_PRELOAD`), in the process it is given to and all that this starts. Monotonic clocks stay
 * right, as they are on such a host.
 */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

let library: string | null = null

/** The environment to start it with; null where there is no C compiler. */
export function wrongClock(seconds: number): Readonly<Record<string, string>> | null {
  library ??= build()
  return library === null ? null : { LD_PRELOAD: library, WRONG_CLOCK_SECONDS: String(seconds) }
}

function build(): string | null {
  if (Bun.which('cc') === null) return null
  const path = join(mkdtempSync(join(tmpdir(), 'gatehouse-wrong-clock-')), 'wrong-clock.so')
  const source = join(import.meta.dir, 'wrong-clock.c')
  const built = Bun.spawnSync(['cc', '-shared', '-fPIC', '-O1', '-o', path, source])
  if (!built.success) throw new Error(`The library could not be built: ${built.stderr}`)
  return path
}

/**
 * What a measurement ran on, and how much of it others took meanwhile: absolute figures hold for an idle machine only.
 */
import { readFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { descendantsOf, familySeconds } from '../../support/processes.ts'

export interface Machine {
  processors: number
  model: string
  bun: string
  /** The share of all processor time that went to others than this process and what it started, 0 to 1. */
  taken_by_others: number
  /** The share of it that was used at all, by whomever. */
  busy: number
}

/** Begins to watch; the result is of the time until it is called. */
export function watchMachine(): () => Machine {
  const before = ticks()
  const ownBefore = ownSeconds()
  return () => {
    const after = ticks()
    const own = (ownSeconds() - ownBefore) * 100
    const [used, all] = [after.busy - before.busy, Math.max(1, after.all - before.all)]
    return {
      processors: cpus().length,
      model: cpus()[0]?.model ?? '',
      bun: Bun.version,
      taken_by_others: Math.max(0, used - own) / all,
      busy: used / all,
    }
  }
}

const ownSeconds = (): number =>
  [process.pid, ...descendantsOf(process.pid)].reduce((sum, pid) => sum + familySeconds(pid), 0)

/** Hundredths of a second of all processors: user, nice, system, idle, waiting for disks, interrupts, stolen. */
function ticks(): { all: number; busy: number } {
  const [line = ''] = readFileSync('/proc/stat', 'latin1').split('\n')
  const columns = line.split(/\s+/).slice(1, 9).map(Number)
  const all = columns.reduce((sum, value) => sum + value, 0)
  return { all, busy: all - (columns[3] ?? 0) - (columns[4] ?? 0) }
}

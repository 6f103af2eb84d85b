/** What a control plane knows of its own host and of the ClickHouse it keeps events in, and the checks of it. */
import { statfsSync } from 'node:fs'
import { type ArchiveReport, archiveFaults } from '../events/clickhouse/archive-state.ts'
import { longestCheckpoint } from '../events/proof/checkpoint.ts'
import { type Checks, fail, warn } from './finding.ts'

const dayMs = 86_400_000
const mebibyte = 1024 * 1024
/** Below this the ledger's log of one busy day may not fit. */
const littleSpace = 1024 * mebibyte
const hardlyAnySpace = 128 * mebibyte
const oldBackupDays = 8
/** From this share of the longest checkpoint on doctor warns. */
const warnedShare = 0.75
/** For how long records may wait for ClickHouse before doctor warns, and before it fails, in seconds. */
const longWait = 900
const tooLongWait = 6 * 3600
/** Bytes of the ledger for each record that waits (handbook/events-and-audit.md, "Events in ClickHouse"). */
const bytesOfRecord = 310
/** Where the records that wait fill the disk sooner than this, in seconds, doctor fails. */
const littleTime = 86_400
/** Records that came in a shorter time than this, in seconds, say little of the rate. */
const leastTime = 60

export interface ControlPlaneHostFacts {
  now: number
  /** Bytes that may still be written to the data directory; null where the system does not say. */
  free: number | null
  /** When a backup was last made of this directory; null where none was, or the databases are on servers. */
  lastBackupAt: number | null
  /** Bytes of the newest checkpoint. */
  checkpointLength: number
  rotation: 'none' | 'ready' | 'running' | 'complete'
  /** Null where the ledger keeps all events. `inTheClear`: what is sent to ClickHouse can be read on the way. */
  archive: (ArchiveReport & { inTheClear: boolean }) | null
}

/** Null where the system does not say. */
export function freeBytes(directory: string): number | null {
  try {
    const { bavail, bsize } = statfsSync(directory)
    return bavail * bsize
  } catch {
    // Not every file system reports it.
    return null
  }
}

/** When records that wait for ClickHouse fill the disk if they come as now, in seconds; null where that is not known. */
function secondsToFull({ archive, free }: ControlPlaneHostFacts): number | null {
  if (archive === null || free === null || archive.records === 0 || archive.seconds < leastTime) return null
  return free / ((archive.records / archive.seconds) * bytesOfRecord)
}

export const controlPlaneHostChecks: Checks<ControlPlaneHostFacts> = {
  space({ free }) {
    if (free === null || free >= littleSpace) return null
    const least = (free < hardlyAnySpace ? hardlyAnySpace : littleSpace) / mebibyte
    const what = `The data directory of the control plane has ${Math.floor(free / mebibyte)} MiB left, less than ${least}`
    const todo = 'Free space, or keep events for a shorter time (SERVICE_EVENT_RETENTION_DAYS)'
    return free < hardlyAnySpace ? fail(what, todo) : warn(what, todo)
  },

  backup({ lastBackupAt, now }) {
    if (lastBackupAt === null) return null
    const days = Math.floor((now - lastBackupAt) / dayMs)
    return days < oldBackupDays
      ? null
      : warn(`The last backup is ${days} days old, more than ${oldBackupDays - 1}`, 'Make one: gatehouse backup FILE')
  },

  checkpoint({ checkpointLength: length }) {
    if (length <= warnedShare * longestCheckpoint) return null
    const todo =
      'Keep events for a shorter time (SERVICE_EVENT_RETENTION_DAYS): a chain leaves the checkpoint with its last event'
    if (length <= longestCheckpoint) {
      const share = Math.floor((100 * length) / longestCheckpoint)
      return warn(`The checkpoint of all chains has ${share} % of the length up to which gateways compare it`, todo)
    }
    return fail(
      'The checkpoint of all chains is too long: gateways no longer notice that the record was rewritten',
      todo,
    )
  },

  master_key({ rotation }) {
    if (rotation === 'ready') {
      return warn('SERVICE_MASTER_KEY_NEXT is set and not used yet', 'Begin the rotation: gatehouse master-key rotate')
    }
    if (rotation !== 'complete') return null
    return warn(
      'The master key was rotated, and the former one is still the setting',
      'Start every control plane with the next key as SERVICE_MASTER_KEY, without SERVICE_MASTER_KEY_NEXT',
    )
  },
  clickhouse_address({ archive }) {
    return archive?.inTheClear === true
      ? warn('Events and the password of ClickHouse cross the network in clear text', 'Reach it over https')
      : null
  },

  clickhouse(facts) {
    const { archive } = facts
    if (archive === null) return null
    const { state, records, seconds } = archive
    const left = secondsToFull(facts)
    const isShort = left !== null && left < littleTime
    const full = isShort ? `; at this rate the disk is full within ${Math.ceil(left / 3600)} h` : ''
    const waiting = `${records} records wait for it in the ledger, the oldest for ${Math.round(seconds / 60)} min${full}`
    const level = seconds < tooLongWait && !isShort ? warn : fail
    if (state === 'ready') {
      if (seconds < longWait) return null
      const todo = 'The log of the control plane says why: look there for "moving events to ClickHouse" and "not moved"'
      return level(`ClickHouse answers, and ${waiting}`, todo)
    }
    if (state === 'away') {
      const todo = 'Start it, look at the network, or make room: records are kept in the ledger meanwhile, which grows'
      return level(`ClickHouse does not answer: ${waiting}`, todo)
    }
    const { what, todo } = archiveFaults[state]
    return fail(`${what}: ${waiting}`, todo)
  },
}

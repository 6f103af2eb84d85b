/**
 * Reads the facts of a gateway host: its data directory, the processes that use it, the running gateway, its control
 * plane. Nothing is written, and what cannot be read is a fact too. Secrets are only opened to check that they open.
 */
import { accessSync, constants, existsSync, type Stats, statfsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Settings } from '../config.ts'
import { type Holder, lockHolder } from '../lib/host/lock-holder.ts'
import { localUrl } from '../lib/http/listen.ts'
import { formerWorkers, workerDirectory } from '../lib/worker.ts'
import { type ControlPlaneFacts, readControlPlane } from './control-plane-facts.ts'
import { type GatewayDirectoryFacts, readGatewayDirectory } from './gateway-directory.ts'
import type { Answer, Probe } from './probe.ts'
import { readVersion, type StateFacts } from './state-version.ts'
import { readUnacknowledged } from './unacknowledged.ts'

/** The gateway's folder in the data directory. */
const place = 'gateway'

export interface DirectoryFacts {
  path: string
  /** The reason when there is no readable directory. */
  missing: string | null
  /** Permission bits. */
  mode: number
  owner: number
  user: number
  writable: boolean
  /** Bytes that may still be written; null when the system does not report them. */
  free: number | null
}

/** A fault of the control plane's files in the directory (app/start-faults.ts). */
export interface DirectoryFault {
  level: 'warn' | 'fail'
  what: string
  todo: string
}

/** Finds such faults; `isHeld` is whether a control plane has the databases open. */
export type FindFaults = (settings: Settings, isHeld: boolean) => Promise<readonly DirectoryFault[]>

export interface HostFacts {
  now: number
  directory: DirectoryFacts
  /** `everything`: this directory holds a control plane too. */
  role: 'everything' | 'gateway'
  holders: { supervisor: Holder; gateway: Holder }
  worker: GatewayDirectoryFacts | null
  /** Its folder within the data directory. */
  place: string
  /** The gateway's other workers with a directory, in order. */
  workers: readonly WorkerFacts[]
  /** Faults of the control plane in this directory; empty when it has none. */
  faults: readonly DirectoryFault[]
  /** The state of the control plane in this directory; null when it has none. */
  state: StateFacts | null
  gateway: { url: string; readiness: Answer; unacknowledged: number | null } | null
  /** Null when its address is not configured. */
  controlPlane: ControlPlaneFacts | null
  settings: Pick<
    Settings,
    | 'api_token'
    | 'gateway_workers'
    | 'max_staleness_seconds'
    | 'outbox_limit_bytes'
    | 'outbox_segment_bytes'
    | 'outbox_keep_hours'
  >
}

export interface WorkerFacts {
  index: number
  holder: Holder
  worker: GatewayDirectoryFacts
  place: string
}

export async function readHost(
  { probe, findFaults }: { probe: Probe; findFaults: FindFaults },
  settings: Settings,
  now: number,
): Promise<HostFacts> {
  const { data } = settings
  const directory = readDirectory(data)
  const everything = ['control-plane', 'state.db', 'ledger.db'].some((name) => existsSync(join(data, name)))
  const role = everything ? 'everything' : 'gateway'
  const holders = {
    supervisor: lockHolder(join(data, 'lock')),
    gateway: lockHolder(join(data, 'gateway', 'worker', 'lock')),
  }
  // The runtime token of a gateway beside its control plane is passed in memory only; a configured token is an
  // operator's.
  const token = role === 'everything' ? null : (settings.api_token ?? null)
  const apiUrl = settings.api_url ?? (role === 'everything' ? localUrl(settings.control_plane_listen) : undefined)
  const isHeld = lockHolder(join(data, 'control-plane', 'lock')).kind === 'held'
  const [faults, gateway, controlPlane] = await Promise.all([
    everything ? findFaults(settings, isHeld) : [],
    holders.gateway.kind === 'free' ? null : readGateway(probe, localUrl(settings.gateway_listen)),
    apiUrl === undefined ? null : readControlPlane(probe, { url: apiUrl, token, inTheClear: false }),
  ])
  const gatewayPath = join(data, place)
  const stateFile = join(data, 'state.db')
  return {
    now,
    directory,
    role,
    holders,
    worker: existsSync(gatewayPath)
      ? readGatewayDirectory(gatewayPath, { token, isWritten: holders.gateway.kind !== 'free' })
      : null,
    place,
    workers: formerWorkers(gatewayPath, 1)
      .toSorted((one, other) => one - other)
      .map((index) => readWorker(data, index, token)),
    faults,
    state: existsSync(stateFile) ? readVersion(stateFile) : null,
    gateway,
    controlPlane,
    settings,
  }
}

function readWorker(data: string, index: number, token: string | null): WorkerFacts {
  const path = workerDirectory(join(data, place), index)
  const holder = lockHolder(join(path, 'worker', 'lock'))
  const worker = readGatewayDirectory(path, { token, isWritten: holder.kind !== 'free' })
  return { index, holder, worker, place: workerDirectory(place, index) }
}

function readDirectory(path: string): DirectoryFacts {
  const nothing = { path, mode: 0, owner: 0, user: process.getuid?.() ?? 0, writable: false, free: null }
  let found: Stats
  try {
    found = statSync(path)
  } catch (error) {
    return { ...nothing, missing: wordsOf(error) }
  }
  if (!found.isDirectory()) return { ...nothing, missing: 'it is not a directory' }
  return {
    ...nothing,
    missing: null,
    mode: found.mode & 0o777,
    owner: found.uid,
    writable: isWritable(path),
    free: freeBytes(path),
  }
}

function wordsOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (code === 'ENOENT') return 'there is none'
  return code === 'EACCES' ? 'this user may not look at it' : `it cannot be looked at (${code})`
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK | constants.X_OK)
    return true
  } catch {
    // By its mode, its owner, or a read-only file system.
    return false
  }
}

function freeBytes(path: string): number | null {
  try {
    const { bavail, bsize } = statfsSync(path)
    return bavail * bsize
  } catch {
    // The file system does not report it.
    return null
  }
}

async function readGateway(probe: Probe, url: string): Promise<NonNullable<HostFacts['gateway']>> {
  const [readiness, unacknowledged] = await Promise.all([probe(`${url}/readyz`), readUnacknowledged(probe, url)])
  return { url, readiness, unacknowledged }
}

/** Reads a gateway's directory: its worker's identity, kept bootstrap and outbox, and its replica. */
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { WorkerFiles } from '../fleet/agent/agent-files.ts'
import { inspectOutbox } from '../fleet/outbox/recovery.ts'
import { listSegments, segmentPath } from '../fleet/outbox/segment.ts'
import { ReplicaFolders } from '../fleet/replica/replica-folder.ts'
import { newId } from '../lib/ids.ts'
import { readVersion, type StateFacts } from './state-version.ts'

export interface GatewayDirectoryFacts {
  instance: { kind: 'none' } | { kind: 'known'; id: string } | { kind: 'damaged' }
  /** The last bootstrap, sealed under the runtime token; `unchecked` when that token is not available here. */
  kept: 'none' | 'opens' | 'sealed' | 'unchecked'
  /** How long it may serve with a stale replica; null when the bootstrap cannot be opened. */
  maxStalenessSeconds: number | null
  /** When the replica was last current, in milliseconds since the epoch, accurate to a few seconds. */
  freshAt: number | null
  /** When another process took this instance over, if that ended its last run. */
  fencedAt: number | null
  outbox: OutboxFacts | null
  replica: ReplicaFacts | null
}

export type OutboxFacts =
  | { kind: 'unreadable'; reason: string }
  /** A process writes to it. */
  | { kind: 'written'; bytes: number }
  | {
      kind: 'stopped'
      bytes: number
      events: number
      /** Exchanges without an outcome, which the next start records as interrupted. */
      open: number
      /** The last event that the control plane is known to have; null when unknown. */
      agreed: number | null
      damage: { segment: number; offset: number } | null
    }

/** `folder` is what `current` names; the rest says what its files hold or what is wrong with them. */
export type ReplicaFacts =
  | { kind: 'unreadable'; reason: string }
  | { kind: 'none' }
  | { kind: 'damaged'; folder: number; fault: string }
  | { kind: 'sound'; folder: number; state: StateFacts }

/** `isWritten`: whether a process uses the directory now. */
export function readGatewayDirectory(
  directory: string,
  { token, isWritten }: { token: string | null; isWritten: boolean },
): GatewayDirectoryFacts {
  const worker = join(directory, 'worker')
  const files = openFiles(worker, token)
  const instance = files === 'none' || files === 'damaged' ? { kind: files } : known(files)
  const outbox = instance.kind === 'known' ? join(worker, 'outbox', instance.id, '0') : null
  const kept = files instanceof WorkerFiles && token !== null ? files.kept() : null
  const agreed = files instanceof WorkerFiles ? (files.agreed()?.seq ?? null) : null
  const replica = join(directory, 'replica')
  return {
    instance,
    kept: keptOf(join(worker, 'keys'), token, kept !== null),
    maxStalenessSeconds: kept?.max_staleness_seconds ?? null,
    freshAt: files instanceof WorkerFiles ? files.freshAt() : null,
    fencedAt: files instanceof WorkerFiles ? files.fencedAt : null,
    outbox: outbox !== null && existsSync(outbox) ? readOutbox(outbox, isWritten, agreed) : null,
    replica: existsSync(replica) ? readReplica(replica) : null,
  }
}

const known = (files: WorkerFiles) => ({ kind: 'known', id: files.instanceId }) as const

/** Without an identity file the class would create a new identity, so it is not used then. */
function openFiles(directory: string, token: string | null): WorkerFiles | 'none' | 'damaged' {
  if (!existsSync(join(directory, 'instance.json'))) return 'none'
  try {
    return new WorkerFiles(directory, token ?? '', newId)
  } catch {
    // Truncated, or written by something else.
    return 'damaged'
  }
}

function keptOf(path: string, token: string | null, opens: boolean): GatewayDirectoryFacts['kept'] {
  if (!existsSync(path)) return 'none'
  if (token === null) return 'unchecked'
  return opens ? 'opens' : 'sealed'
}

function readOutbox(directory: string, isWritten: boolean, agreed: number | null): OutboxFacts {
  try {
    if (!isWritten) return { kind: 'stopped', ...inspectOutbox(directory), agreed }
    const sizes = listSegments(directory).map((index) => statSync(segmentPath(directory, index)).size)
    return { kind: 'written', bytes: sizes.reduce((sum, size) => sum + size, 0) }
  } catch (error) {
    return { kind: 'unreadable', reason: reasonOf(error) }
  }
}

function readReplica(directory: string): ReplicaFacts {
  try {
    const folders = new ReplicaFolders(directory)
    const folder = folders.current
    if (folder === null) return { kind: 'none' }
    const fault = folders.faultOf(folder)
    if (fault !== null) return { kind: 'damaged', folder, fault }
    return { kind: 'sound', folder, state: readVersion(folders.fileOf(folder)) }
  } catch (error) {
    return { kind: 'unreadable', reason: reasonOf(error) }
  }
}

/** A parser's message may quote the file, so only the system's error code is shown. */
const reasonOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : 'it holds something else'

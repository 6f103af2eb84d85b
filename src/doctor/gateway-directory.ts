/** A gateway's directory as it lies there: its worker with identity, what is kept for a restart and outbox; its replica. */
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
  /** What the last bootstrap gave, sealed under the runtime token; `unchecked` where that token is not here. */
  kept: 'none' | 'opens' | 'sealed' | 'unchecked'
  /** How long it may serve without news, as its control plane has told; null where that cannot be opened. */
  maxStalenessSeconds: number | null
  /** When its news were last fresh, milliseconds since the epoch, to a few seconds. */
  freshAt: number | null
  /** When another process took this instance over, where that ended its last run. */
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
      /** The last event that the control plane is known to have; null where that is not known. */
      agreed: number | null
      damage: { segment: number; offset: number } | null
    }

/** `folder` is what `current` names, with what is wrong with its files or what they hold. */
export type ReplicaFacts =
  | { kind: 'unreadable'; reason: string }
  | { kind: 'none' }
  | { kind: 'damaged'; folder: number; fault: string }
  | { kind: 'sound'; folder: number; state: StateFacts }

/** `isWritten`: whether a process uses the directory at this moment. */
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

/** Without a file of its own the class would make the worker another identity: it is not asked then. */
function openFiles(directory: string, token: string | null): WorkerFiles | 'none' | 'damaged' {
  if (!existsSync(join(directory, 'instance.json'))) return 'none'
  try {
    return new WorkerFiles(directory, token ?? '', newId)
  } catch {
    // Cut short, or written by something else.
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

/** What a file holds may stand in a parser's message: the system's word is enough. */
const reasonOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : 'it holds something else'

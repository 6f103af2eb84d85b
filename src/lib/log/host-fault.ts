/** The resource that this host has run out of, from the error of a call that failed because of it. */
import { closeSync, openSync } from 'node:fs'
import { devNull } from 'node:os'

type HostFault = 'disk_full' | 'file_descriptors_exhausted'

const faults: Readonly<Record<string, HostFault>> = {
  ENOSPC: 'disk_full',
  EDQUOT: 'disk_full',
  SQLITE_FULL: 'disk_full',
  EMFILE: 'file_descriptors_exhausted',
  ENFILE: 'file_descriptors_exhausted',
}

/** The remedy, in words for the operator of the host. */
export const hostFaultAdvice: Readonly<Record<HostFault, string>> = {
  disk_full: 'The disk is full: free space on it. It goes on by itself then; nothing has to be restarted',
  file_descriptors_exhausted:
    'No file descriptor is left: raise the limit (ulimit -n, LimitNOFILE= in a systemd unit) and start it again',
}

/** Null if the error and its cause are of another kind. */
export function hostFaultOf(thrown: unknown): HostFault | null {
  if (!(thrown instanceof Error)) return null
  const code = 'code' in thrown ? String(thrown.code) : ''
  return faults[code] ?? hostFaultOf(thrown.cause)
}

/** Whether this process can open a file at all. */
export function canOpenFiles(): boolean {
  try {
    closeSync(openSync(devNull, 'r'))
    return true
  } catch (error) {
    return hostFaultOf(error) !== 'file_descriptors_exhausted'
  }
}

/** The error of a connection whose name look-up failed, for want of a descriptor or for other reasons. */
const ambiguous: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'FailedToOpenSocket'])

/**
 * Whether a call to another host failed because this one has no descriptor left: then it says nothing about the other
 * host.
 */
export function lacksDescriptor(thrown: unknown): boolean {
  if (hostFaultOf(thrown) === 'file_descriptors_exhausted') return true
  const isAmbiguous = thrown instanceof Error && 'code' in thrown && ambiguous.has(String(thrown.code))
  return isAmbiguous && !canOpenFiles()
}

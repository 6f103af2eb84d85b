/** Why a server cannot start, in words that name the cause, and the setting to change if there is one. */
import { join, resolve } from 'node:path'
import { flagName, type Settings } from '../../src/config.ts'
import { Failure, failures } from '../../src/failure.ts'
import { lockHolder } from '../../src/lib/host/lock-holder.ts'

type ListenSetting = 'control_plane_listen' | 'gateway_listen'

const addressReasons: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another process listens there',
  EADDRNOTAVAIL: 'this host has no such address',
  EACCES: 'this user may not use that port',
  ENOTFOUND: 'the name is unknown',
}

const directoryReasons: Readonly<Record<string, string>> = {
  EACCES: 'this user has no right to',
  EPERM: 'this user has no right to',
  EROFS: 'the file system is read-only',
  ENOTDIR: 'a part of the path is not a directory',
  EEXIST: 'there is a file of that name',
  ENOENT: 'a part of the path does not exist',
  EISDIR: 'it is a directory',
  ENOSPC: 'no space is left',
  EDQUOT: 'the quota is used up',
  EFBIG: 'a file may not grow that large',
  SQLITE_CANTOPEN: 'a file in it cannot be opened',
  SQLITE_READONLY: 'a file in it is read-only',
  SQLITE_FULL: 'no space is left',
  SQLITE_IOERR: 'the disk failed, or no space is left',
}

const codeOf = (thrown: unknown): string => (thrown instanceof Error && 'code' in thrown ? String(thrown.code) : '')

/** Whether this comes from binding a socket, which shares EACCES with files. */
const isAboutSocket = (thrown: unknown): boolean =>
  thrown instanceof Error &&
  (('syscall' in thrown && thrown.syscall === 'listen') || /server|listen/i.test(thrown.message))

const serverNames: Readonly<Record<ListenSetting, string>> = {
  control_plane_listen: 'control plane',
  gateway_listen: 'gateway',
}

/** Names the address and the flag, or the data directory; of anything else the error's own text. */
export function startFailure(thrown: unknown, settings: Settings, listen: ListenSetting): Failure {
  if (thrown instanceof Failure) return withCause(thrown, listen)
  const code = codeOf(thrown)
  if (addressReasons[code] && (code !== 'EACCES' || isAboutSocket(thrown))) {
    return new Failure('address_in_use', {
      message: `Cannot listen at ${settings[listen]} (${flagName(listen)}): ${addressReasons[code]}`,
      cause: thrown,
    })
  }
  const failure = dataFailure(thrown, settings.data)
  return failure instanceof Failure ? failure : unforeseen(thrown, listen)
}

/** If a failure's own text is only its code, or is about a dependency, the text of its cause is added. */
function withCause(failure: Failure, listen: ListenSetting): Failure {
  const { code, message, cause } = failure
  const saysWhy = message !== failures[code].message && code !== 'dependency_unavailable'
  if (cause === undefined || saysWhy) return failure
  if (code === 'internal') return unforeseen(cause, listen)
  return new Failure(code, { message: `${message}. The cause: ${textOf(cause)}`, cause })
}

const unforeseen = (cause: unknown, listen: ListenSetting): Failure =>
  new Failure('process_failed', { message: `The ${serverNames[listen]} could not start: ${textOf(cause)}`, cause })

const textOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown))

/** Why a file or directory could not be used; null for an error of another kind. */
export const fileReason = (thrown: unknown): string | null =>
  Object.entries(directoryReasons).find(([known]) => codeOf(thrown).startsWith(known))?.[1] ?? null

export const pathOf = (thrown: unknown): string | null =>
  thrown instanceof Error && 'path' in thrown && typeof thrown.path === 'string' ? thrown.path : null

export function dataFailure(thrown: unknown, directory: string): unknown {
  const reason = fileReason(thrown)
  if (reason === null) return thrown
  const path = pathOf(thrown) === null ? '' : ` (${pathOf(thrown)})`
  return new Failure('data_unwritable', {
    message: `The data directory ${resolve(directory)} (--data) cannot be written: ${reason}${path}`,
    cause: thrown,
  })
}

/** Somebody else holds the lock of a directory: says which process, where this one can see it. */
export function alreadyRunning(locked: string, said: string): Failure {
  const holder = lockHolder(join(locked, 'lock'))
  // A process outside of this container has the number 0 here.
  const named = holder.kind === 'held' && holder.pid > 0 ? `, process ${holder.pid}` : ''
  return new Failure('already_running', { message: `${said}${named}` })
}

/**
 * The sessions of `auth login`, one for each control plane, in a file of their own (0600) beside the profiles: a
 * person writes a profile and may share it, a session must not be shared. A session belongs to the address that
 * issued it and is never sent to another, whatever a profile or a flag says.
 */
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { Failure } from '../../src/failure.ts'
import type { Terminal } from '../terminal/terminal.ts'

const fileSchema = z.strictObject({ sessions: z.record(z.string(), z.strictObject({ token: z.string() })) })
type Sessions = z.infer<typeof fileSchema>['sessions']

/** Where this user's files are. */
export const configDirectory = (environment: Terminal['environment']): string =>
  join(environment.XDG_CONFIG_HOME || join(environment.HOME || homedir(), '.config'), 'gatehouse')

/** The session file that goes with a profile file, or with the standard one. */
export const sessionFile = (profileFile: string | undefined, environment: Terminal['environment']): string =>
  join(profileFile === undefined ? configDirectory(environment) : dirname(profileFile), 'sessions.json')

/** The session kept for this control plane, or null. Throws `usage` where others could have read or written it. */
export function keptSession(path: string, apiUrl: string): string | null {
  const sessions = readSessions(path)
  return Object.hasOwn(sessions, apiUrl) ? (sessions[apiUrl]?.token ?? null) : null
}

/** Keeps a session; the one that was kept for this control plane before is forgotten. */
export const keepSession = (path: string, apiUrl: string, token: string): void =>
  writeSessions(path, { ...readSessions(path), [apiUrl]: { token } })

export function forgetSession(path: string, apiUrl: string): void {
  const { [apiUrl]: _forgotten, ...others } = readSessions(path)
  writeSessions(path, others)
}

function readSessions(path: string): Sessions {
  if (!existsSync(path)) return {}
  if ((statSync(path).mode & 0o077) !== 0) {
    throw new Failure('usage', { message: `${path} holds sessions and is open to other users: chmod 600 it` })
  }
  let content: unknown
  try {
    content = JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    // The parser's message quotes the content, which is secret.
    content = undefined
  }
  const parsed = fileSchema.safeParse(content)
  if (!parsed.success) throw new Failure('usage', { message: `${path} is damaged: remove it and sign in again` })
  return parsed.data.sessions
}

/** Whole or not at all, and never for a moment readable by others. */
function writeSessions(path: string, sessions: Sessions): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const next = `${path}.${process.pid}`
  rmSync(next, { force: true })
  writeFileSync(next, `${JSON.stringify({ sessions }, null, 2)}\n`, { mode: 0o600, flag: 'wx' })
  chmodSync(next, 0o600)
  renameSync(next, path)
}

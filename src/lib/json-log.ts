/** The log of a server process: one line of JSON an event, written at once and in order (contract section 14). */
import { writeSync } from 'node:fs'
import type { Log } from './log.ts'
import { logLines } from './log-lines.ts'

const levels = ['error', 'warn', 'info', 'debug'] as const
type Level = (typeof levels)[number]

export interface LogOptions {
  /** The finest level that is written. */
  level: Level
  /** What stands in every line, such as which process it is. */
  fields?: Record<string, string | number>
  /** Standard output for servers; standard error where standard output is kept for data. */
  destination: 'stdout' | 'stderr' | { put(bytes: Uint8Array): number }
}

const descriptors = { stdout: 1, stderr: 2 } as const

/** Time as RFC 3339, level as a word. Fields are plain data: whoever logs an error gives its text. */
export function createLog({ level: finest, fields: common = {}, destination }: LogOptions): Log {
  const put =
    typeof destination === 'string'
      ? (bytes: Uint8Array) => writeSync(descriptors[destination], bytes)
      : destination.put
  const written = levels.slice(0, levels.indexOf(finest) + 1)
  const write = (level: Level, fields: Record<string, unknown>, msg: string): void => {
    if (!written.includes(level)) return
    const line = { level, time: new Date().toISOString(), ...common, ...fields, msg }
    lines.write(`${JSON.stringify(line, exactNumbers)}\n`)
  }
  const log: Log = {
    error: (fields, message) => write('error', fields, message),
    warn: (fields, message) => write('warn', fields, message),
    info: (fields, message) => write('info', fields, message),
    debug: (fields, message) => write('debug', fields, message),
  }
  const lines = logLines({
    put,
    onResumed: (dropped) => log.warn({ dropped }, 'Lines of the log could not be written'),
  })
  return log
}

/** JSON has no way to write a BigInt, and a line that cannot be written must not throw into who logs. */
const exactNumbers = (_name: string, value: unknown): unknown => (typeof value === 'bigint' ? `${value}` : value)

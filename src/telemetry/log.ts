/** The log of a server process: pino's JSON lines, written at once and in order (contract section 14). */
import pino from 'pino'
import type { Log } from '../lib/log.ts'

export interface LogOptions {
  level: 'error' | 'warn' | 'info' | 'debug'
  /** What stands in every line, such as which process it is. */
  fields?: Record<string, string | number>
  /** Standard output for servers; standard error where standard output is kept for data. */
  destination: 'stdout' | 'stderr' | { write(line: string): void }
}

const descriptors = { stdout: 1, stderr: 2 } as const

/** Time as RFC 3339, level as a word. Pino's transports run in threads of their own and are not used. */
export function createLog({ level, fields = {}, destination }: LogOptions): Log {
  const stream =
    typeof destination === 'string' ? pino.destination({ dest: descriptors[destination], sync: true }) : destination
  return pino(
    {
      level,
      base: fields,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    stream,
  )
}

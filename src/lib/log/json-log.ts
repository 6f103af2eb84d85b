/**
 * The log of a server process: pino's JSON lines, written at once and in order (telemetry/README.md); on a terminal
 * lines of plain text.
 */
import { writeSync } from 'node:fs'
import { isatty } from 'node:tty'
import type { Log } from './log.ts'
import { limitLog } from './log-limit.ts'
import { logLines } from './log-lines.ts'
import { terminalLine } from './terminal-line.ts'

interface LogOptions {
  level: 'error' | 'warn' | 'info' | 'debug'
  /** Fields of every line, such as the process's name. */
  fields?: Record<string, string | number>
  /** Standard output for servers; standard error if standard output carries data. */
  destination: 'stdout' | 'stderr' | { put(bytes: Uint8Array): number }
}

const descriptors = { stdout: 1, stderr: 2 } as const

const levels = ['error', 'warn', 'info', 'debug'] as const

/** Pino is loaded at the first line, which few starts write. */
export function createLog(options: LogOptions): Log {
  let made: Log | null = null
  const log = () => {
    made ??= makeLog(options)
    return made
  }
  const last = levels.indexOf(options.level)
  const at =
    (level: (typeof levels)[number]): Log['error'] =>
    (fields, message) => {
      if (levels.indexOf(level) <= last) log()[level](fields, message)
    }
  return limitLog({ error: at('error'), warn: at('warn'), info: at('info'), debug: at('debug') })
}

const pinoLibrary = (): typeof import('pino') => require('pino')

/**
 * Time as RFC 3339, level as a word. Pino's transports run in threads of their own and are not used. Nor is its own
 * destination, which throws into the caller if the disk is full.
 */
function makeLog({ level, fields = {}, destination }: LogOptions): Log {
  const put =
    typeof destination === 'string'
      ? (bytes: Uint8Array) => writeSync(descriptors[destination], bytes)
      : destination.put
  const lines = logLines({
    put,
    onResumed: (dropped) => log.warn({ dropped }, 'Lines of the log could not be written'),
  })
  const isTerminal = typeof destination === 'string' && isatty(descriptors[destination])
  const pino = pinoLibrary()
  const log = pino(
    {
      level,
      base: fields,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    isTerminal ? { write: (line: string) => lines.write(terminalLine(line)) } : lines,
  )
  return log
}

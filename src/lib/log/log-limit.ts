/**
 * Keeps a repeating fault from flooding the log: of warnings and errors with the same text, five lines are written in
 * ten seconds. The rest is counted, and the last of them is written at the end with the count, as `suppressed`.
 */
import type { Log } from './log.ts'

type Write = (fields: Record<string, unknown>, message: string) => void

interface LogLimit {
  lines: number
  milliseconds: number
}

const standard: LogLimit = { lines: 5, milliseconds: 10_000 }

/** The most kinds of lines that are remembered at once; beyond that a kind counts as new. */
const mostKinds = 1000

interface Window {
  written: number
  suppressed: number
  last: Record<string, unknown>
}

export function limitLog(log: Log, { lines, milliseconds }: LogLimit = standard): Log {
  const windows = new Map<string, Window>()
  const limited =
    (level: 'error' | 'warn'): Write =>
    (fields, message) => {
      const kind = `${level} ${kindOf(fields, message)}`
      const window = windows.get(kind)
      if (window === undefined) {
        if (windows.size < mostKinds) open(kind, (last) => log[level](last, message))
        return log[level](fields, message)
      }
      if (window.written < lines) {
        window.written += 1
        return log[level](fields, message)
      }
      window.suppressed += 1
      window.last = fields
    }
  const open = (kind: string, write: (fields: Record<string, unknown>) => void): void => {
    const window: Window = { written: 1, suppressed: 0, last: {} }
    windows.set(kind, window)
    setTimeout(() => {
      windows.delete(kind)
      if (window.suppressed === 0) return
      write({ ...window.last, suppressed: window.suppressed })
    }, milliseconds).unref()
  }
  return {
    error: limited('error'),
    warn: limited('warn'),
    info: (fields, message) => log.info(fields, message),
    debug: (fields, message) => log.debug(fields, message),
  }
}

/** Messages and errors count as the same if they differ only in numbers and ids. */
const kindOf = ({ code, error, work }: Record<string, unknown>, message: string): string =>
  [message, code, work, error]
    .join(' ')
    .slice(0, 500)
    .replaceAll(/[0-9a-f-]{8,}|\d+/gi, '#')

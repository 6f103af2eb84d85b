/** A log line is one event that a person should read: a message in words, and fields. Never a secret, never a prompt. */
export interface Log {
  error(fields: Record<string, unknown>, message: string): void
  warn(fields: Record<string, unknown>, message: string): void
  info(fields: Record<string, unknown>, message: string): void
  debug(fields: Record<string, unknown>, message: string): void
}

const nothing = () => undefined
export const silentLog: Log = { error: nothing, warn: nothing, info: nothing, debug: nothing }

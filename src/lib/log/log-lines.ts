/**
 * Writes log lines so that logging never fails or blocks its caller: a line that cannot be written (the disk is full,
 * the reader gone or slow) is dropped and counted, and the next one is tried again. A line that was cut is ended
 * before the next, so that every readable line is whole.
 */
interface LogLines {
  write(line: string): void
}

interface LogLinesOptions {
  /** Writes as many of the bytes as it can and returns how many; throws if none can be written. */
  put(bytes: Uint8Array): number
  /** Lines go through again after some were dropped. */
  onResumed(dropped: number): void
}

/** How long one line waits for a slow reader, in milliseconds; while lines are dropped none waits. */
const longestWait = 100
const waitStep = 5

export function logLines({ put, onResumed }: LogLinesOptions): LogLines {
  let dropped = 0
  let cut = false
  const write = (line: string): void => {
    const rest = { bytes: Buffer.from(cut ? `\n${line}` : line) }
    const whole = rest.bytes.length
    if (!putAll(put, rest, dropped === 0 ? longestWait : 0)) {
      cut ||= rest.bytes.length < whole
      dropped += 1
      return
    }
    cut = false
    if (dropped === 0) return
    const count = dropped
    dropped = 0
    onResumed(count)
  }
  return { write }
}

/** Whether everything was written; `rest` holds what was not. */
function putAll(put: LogLinesOptions['put'], rest: { bytes: Uint8Array }, patience: number): boolean {
  let waited = 0
  while (rest.bytes.length > 0) {
    try {
      rest.bytes = rest.bytes.subarray(put(rest.bytes))
    } catch (error) {
      // A pipe whose reader is slow; waiting does not help with other errors.
      const full = error instanceof Error && 'code' in error && error.code === 'EAGAIN'
      if (!full || waited >= patience) return false
      Bun.sleepSync(waitStep)
      waited += waitStep
    }
  }
  return true
}

/**
 * Where log lines go, in a way that can never fail or hold up who logs: a line that cannot be written (the disk is full,
 * the reader gone or slow) is dropped and counted, and the next one is tried again. A line that was cut in the middle is
 * ended before another follows, so that each line that can be read is whole.
 */
interface LogLines {
  write(line: string): void
}

interface LogLinesOptions {
  /** Writes what it can of the bytes and gives how many; throws where none can be written. */
  put(bytes: Uint8Array): number
  /** Lines go through again after some were dropped. */
  onResumed(dropped: number): void
}

/** How long one line waits for a reader that is slow, in milliseconds; while lines are dropped none waits. */
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

/** Whether all was written; `rest` holds what was not. */
function putAll(put: LogLinesOptions['put'], rest: { bytes: Uint8Array }, patience: number): boolean {
  let waited = 0
  while (rest.bytes.length > 0) {
    try {
      rest.bytes = rest.bytes.subarray(put(rest.bytes))
    } catch (error) {
      // A pipe whose reader has not kept up; anything else does not pass by waiting.
      const full = error instanceof Error && 'code' in error && error.code === 'EAGAIN'
      if (!full || waited >= patience) return false
      Bun.sleepSync(waitStep)
      waited += waitStep
    }
  }
  return true
}

/**
 * `apply --watch`: applies again whenever the files differ. The files are read every two seconds and compared by their
 * content, because a ConfigMap is changed by swapping a link to its folder, which file systems do not report alike. Files
 * are applied when two looks in a row saw the same. What fails is said and tried again, every half minute and when the
 * files change; the process goes on until it is told to stop.
 */
import { asFailure } from '../../../src/failure.ts'
import { report } from '../../command/report.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import type { Source } from './documents.ts'

export interface WatchOptions {
  read(): Promise<readonly Source[]>
  apply(): Promise<void>
  terminal: Terminal
  stopped: AbortSignal
  everyMilliseconds?: number
  retryMilliseconds?: number
}

export async function watch({
  read,
  apply,
  terminal,
  stopped,
  everyMilliseconds = 2000,
  retryMilliseconds = 30_000,
}: WatchOptions): Promise<void> {
  let [seen, applied] = ['', '']
  let retryAt = Number.POSITIVE_INFINITY
  while (!stopped.aborted) {
    const now = await digestOf(read)
    const isSettled = now === seen || applied === ''
    seen = now
    if (isSettled && (now !== applied || performance.now() >= retryAt)) {
      applied = now
      retryAt = Number.POSITIVE_INFINITY
      try {
        await apply()
      } catch (thrown) {
        report(thrown, terminal)
        retryAt = performance.now() + retryMilliseconds
      }
    }
    await pause(everyMilliseconds, stopped)
  }
}

/** What the files hold, or why they cannot be read. */
async function digestOf(read: () => Promise<readonly Source[]>): Promise<string> {
  try {
    const text = (await read()).map(({ name, content }) => JSON.stringify([name, content])).join('\n')
    return Bun.hash(text).toString()
  } catch (thrown) {
    return asFailure(thrown).message
  }
}

function pause(milliseconds: number, stopped: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, milliseconds)
  stopped.addEventListener('abort', () => resolve(), { once: true })
  return promise.finally(() => clearTimeout(timer))
}

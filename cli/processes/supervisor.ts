/**
 * Keeps one child process running: starts it, restarts it when it ends, waiting 100 ms and twice as long each time up
 * to 5 s, and from the beginning again after it was ready for 10 s. A child that never became ready is not restarted
 * for ever: the first start gives up with the child's own error, at once where the error says that a repeat would be
 * the same, otherwise after three starts.
 */
import { Failure, type FailureCode } from '../../src/failure.ts'
import type { Clock } from '../../src/lib/clock.ts'
import type { Log } from '../../src/lib/log/log.ts'
import { announcedMessage, type ChildMessage, failureOf, type Handover, isChildMessage } from './child-message.ts'

const firstDelay = 100
const longestDelay = 5_000
const healthyAfter = 10_000
const startsBeforeGivingUp = 3

/** The wait before the next start, from the last one and how long the child had been ready. */
export const nextDelay = (lastDelay: number | null, readyFor: number): number =>
  lastDelay === null || readyFor >= healthyAfter ? firstDelay : Math.min(lastDelay * 2, longestDelay)

const notRetryable: ReadonlySet<string> = new Set<FailureCode>([
  'address_in_use',
  'data_damaged',
  'data_incompatible',
  'data_unwritable',
  'already_running',
  'invalid_parameter',
  'unknown_parameter',
  'usage',
  'worker_fenced',
])

export interface ChildOptions {
  name: string
  /** The whole command line. */
  command: readonly string[]
  environment: Readonly<Record<string, string | undefined>>
  clock: Clock
  log: Log
  /** Gives what each start of the child receives as soon as it is known; null: it receives nothing. */
  handover?(): Promise<Handover | null>
  /** Called with what the child hands over to another child before it is ready. */
  onHandover?(handed: Handover): void
  /** Called with each message of the child once it is ready, also after a restart. */
  onMessage?(message: ReadyMessage): void
  /** Called when the child was ready and ended with an error that would repeat: it is not restarted. */
  onOver?(failure: Failure): void
}

export type ReadyMessage = Exclude<ChildMessage, { ready: false | 'soon' }>

export interface Child {
  /** What the child said when it first became ready; rejects where it never did. */
  ready: Promise<ReadyMessage>
  /** Tells it, now and after each restart, that what it said has reached whom it is for. */
  announced(): void
  /** Lets it drain for `milliseconds` at most and starts it again, with what is handed over by then. */
  renew(milliseconds: number): Promise<void>
  /** Does not start it again when it ends. */
  retire(): void
  /** Asks it to drain, kills it when `milliseconds` have passed; resolves when it is gone and stays gone. */
  stop(milliseconds: number): Promise<void>
}

export function keepRunning(options: ChildOptions): Child {
  const ready = Promise.withResolvers<ReadyMessage>()
  const stopping = Promise.withResolvers<void>()
  let stopped = false
  let announced = false
  let current: Run | null = null

  async function restart(): Promise<void> {
    let delay: number | null = null
    let wasReady = false
    for (let starts = 1; !stopped; starts++) {
      const run = startChild(options, (message) => {
        wasReady = true
        ready.resolve(message)
        options.onMessage?.(message)
        if (announced) current?.tell(announcedMessage)
      })
      current = run
      const { readyFor, failure, exit } = await run.ended
      if (stopped) return
      if (wasReady && failure && notRetryable.has(failure.code) && options.onOver) return options.onOver(failure)
      if (!wasReady && (starts >= startsBeforeGivingUp || (failure && notRetryable.has(failure.code)))) {
        const message = `The ${options.name} ended with ${exit} before it was ready, ${starts} times`
        ready.reject(failure ?? new Failure('process_failed', { message }))
        return
      }
      delay = nextDelay(delay, readyFor)
      options.log.warn(
        { child: options.name, exit, ...(failure !== null && { error: failure.message }), restart_in_ms: delay },
        'A child process ended; it is started again',
      )
      await Promise.race([Bun.sleep(delay), stopping.promise])
    }
  }

  const done = restart()
  const retire = () => {
    stopped = true
    stopping.resolve()
  }
  return {
    ready: ready.promise,
    announced() {
      announced = true
      current?.tell(announcedMessage)
    },
    async renew(milliseconds) {
      await current?.stop(milliseconds)
    },
    retire,
    async stop(milliseconds) {
      retire()
      await current?.stop(milliseconds)
      await done
    },
  }
}

interface Ended {
  /** Milliseconds; 0 where it never was. */
  readyFor: number
  failure: Failure | null
  /** In words: an exit code or a signal. */
  exit: string
}

interface Run {
  ended: Promise<Ended>
  tell(message: string | Handover): void
  stop(milliseconds: number): Promise<void>
}

/** How long the last words of a child that has ended may take to be read. */
const lastWordsMilliseconds = 250

function startChild(
  { name, command, environment, clock, log, handover, onHandover }: ChildOptions,
  onReady: (message: ReadyMessage) => void,
): Run {
  let readyAt: number | null = null
  let failure: Failure | null = null
  const disconnected = Promise.withResolvers<void>()
  const child = Bun.spawn([...command], {
    env: { ...environment },
    stdin: 'ignore',
    // Logs go to stderr: stdout is for what `up` has to say.
    stdout: 2,
    stderr: 'inherit',
    ipc(received) {
      if (!isChildMessage(received))
        return log.error({ child: name }, 'A child process said something that is not understood')
      if (received.ready === false) {
        failure = failureOf(received)
      } else if (received.ready === 'soon') {
        onHandover?.(received)
      } else {
        readyAt ??= clock.monotonic()
        onReady(received)
      }
    },
    onDisconnect: () => disconnected.resolve(),
  })
  const ended = child.exited.then(async () => {
    const endedAt = clock.monotonic()
    await Promise.race([disconnected.promise, Bun.sleep(lastWordsMilliseconds)])
    const exit = child.signalCode === null ? `code ${child.exitCode}` : String(child.signalCode)
    return { readyFor: readyAt === null ? 0 : endedAt - readyAt, failure, exit }
  })
  const tell = (message: string | Handover) => {
    if (child.exitCode === null && child.signalCode === null) child.send(message)
  }
  void handover?.().then((handed) => handed !== null && tell(handed))
  return {
    ended,
    tell,
    async stop(milliseconds) {
      child.kill('SIGTERM')
      const late = await Promise.race([ended.then(() => false), Bun.sleep(milliseconds).then(() => true)])
      if (!late) return
      log.warn({ child: name }, 'A child process had not drained in time and was killed')
      child.kill('SIGKILL')
      await ended
    },
  }
}

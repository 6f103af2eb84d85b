/**
 * The life of a process that serves: start, say so, serve until told to stop, drain, exit 0.
 *
 * It stops on SIGTERM or SIGINT. Under the supervisor of `up` it ignores SIGINT, which a terminal sends to the whole
 * group while the supervisor stops its children in order, and it also stops when the channel to the supervisor closes:
 * so a supervisor that is killed leaves nobody behind. A second signal ends the process at once.
 */
import type { Settings } from '../../src/config.ts'
import type { Failure } from '../../src/failure.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { canOpenFiles, hostFaultAdvice } from '../../src/lib/log/host-fault.ts'
import type { Log } from '../../src/lib/log/log.ts'
import { announcedMessage, type ChildMessage, failedMessage } from './child-message.ts'
import { startFailure } from './start-failure.ts'
import { stopSignal } from './stop-signal.ts'

export interface Serving {
  /** Resolves, with the announcement, once the process can do its work. */
  ready: Promise<ChildMessage>
  /** Called once the announcement has been delivered. */
  announced?(): Promise<void>
  /** Resolves, with the reason, if the process has to end by itself. */
  over?: Promise<Failure>
  drain(): Promise<void>
}

export interface Lifecycle {
  settings: Settings
  listen: 'control_plane_listen' | 'gateway_listen'
  log: Log
  /** `say` sends the supervisor, if there is one, a later message. */
  start(say: (message: ChildMessage) => Promise<void>): Promise<Serving>
  /** How long a drain may take beyond `drain_seconds`, in milliseconds. */
  recordingMilliseconds?: number
  /** Announces to a person; called only without a supervisor. */
  announce(message: ChildMessage): Promise<void>
}

/**
 * Running requests may take all of `drain_seconds`; what is cut then is still recorded, and the record shipped. This is
 * how long that may take, in milliseconds.
 */
export const recordingTime = 5_000

/** Runs to the end of the process. Throws if it could not start. */
export async function serveUntilStopped(lifecycle: Lifecycle): Promise<never> {
  const { settings, listen, log, start, announce, recordingMilliseconds = recordingTime } = lifecycle
  const supervised = process.send !== undefined
  const stopped = stopRequest(supervised)
  setInterval(() => sayWhetherFilesOpen(log), descriptorsLookedAtMilliseconds).unref()
  let serving: Serving
  try {
    serving = await start(supervised ? tellSupervisor : async () => undefined)
    const over = serving.over?.then((failure) => Promise.reject(failure)) ?? new Promise<never>(() => undefined)
    const message = await Promise.race([serving.ready, stopped.then(() => null), over])
    if (message !== null && supervised) {
      process.on('message', (said) => {
        if (said === announcedMessage) void noteAnnounced(serving, log)
      })
      await tellSupervisor(message)
    } else if (message !== null) {
      await announce(message)
      await noteAnnounced(serving, log)
    }
    await Promise.race([stopped, over])
  } catch (thrown) {
    const failure = startFailure(thrown, settings, listen)
    // Of a defect the log has the stack.
    if (failure.code === 'process_failed') log.error({ error: stackOf(failure.cause) }, 'This process could not start')
    if (!supervised) throw failure
    await tellSupervisor(failedMessage(failure))
    process.exit(1)
  }
  await Promise.race([serving.drain(), Bun.sleep(settings.drain_seconds * 1000 + recordingMilliseconds)])
  process.exit(0)
}

const descriptorsLookedAtMilliseconds = 10_000

/** Without a free file descriptor the server accepts no connection, so no answer can say why: the log does. */
function sayWhetherFilesOpen(log: Log): void {
  if (!canOpenFiles()) log.error({}, hostFaultAdvice.file_descriptors_exhausted)
}

const stackOf = (thrown: unknown): string => (thrown instanceof Error && thrown.stack) || String(thrown)

/** Best effort: the server continues if this cannot be recorded, and the next start announces again. */
async function noteAnnounced(serving: Serving, log: Log): Promise<void> {
  try {
    await serving.announced?.()
  } catch (error) {
    log.warn({ error: String(error) }, 'That it was announced could not be noted: the next start announces it again')
  }
}

function stopRequest(supervised: boolean): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const stop = stopSignal(systemClock, resolve, () => process.exit(1))
  process.on('SIGTERM', stop)
  process.on('SIGINT', supervised ? () => undefined : stop)
  if (supervised) process.on('disconnect', () => resolve())
  return promise
}

/**
 * Resolves when the message is sent, or when the supervisor is gone; then `disconnect` follows. If the supervisor
 * ends at this moment, Bun reports the message neither as sent nor as failed.
 */
async function tellSupervisor(message: ChildMessage): Promise<void> {
  if (!process.connected || process.send === undefined) return
  const { promise, resolve } = Promise.withResolvers<void>()
  process.once('disconnect', resolve)
  process.send(message, undefined, undefined, () => resolve())
  await promise
  process.off('disconnect', resolve)
}

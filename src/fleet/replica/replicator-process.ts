/** One run of the replicator. */
import type { Log } from '../../lib/log/log.ts'
import { type ReplicatorOrder, type ReplicatorReport, replicatorReportSchema } from '../protocol/replicator-message.ts'

export interface ReplicatorProcess {
  send(order: ReplicatorOrder): void
  /** Kills it at once: a kill does no harm. */
  kill(): void
}

export interface ReplicatorProcessOptions {
  /** The whole command line. */
  command: readonly string[]
  log: Log
  onReport(report: ReplicatorReport): void
  /** It ended without a kill; the argument says how. */
  onEnd(exit: string): void
}

export type StartReplicator = (options: ReplicatorProcessOptions) => ReplicatorProcess

/** Starts it with an empty environment. Its only credential comes with its orders. */
export const startReplicator: StartReplicator = ({ command, log, onReport, onEnd }) => {
  let killed = false
  const child = Bun.spawn([...command], {
    env: { ...withoutOurs(process.env), RUST_LOG: 'off' },
    stdin: 'ignore',
    // The native code writes logs there, and standard output is for our own lines.
    stdout: 'ignore',
    stderr: 'inherit',
    ipc(received) {
      const report = replicatorReportSchema.safeParse(received)
      if (report.success) onReport(report.data)
      else log.error({}, 'The replicator sent an invalid message')
    },
  })
  void child.exited.then(() => {
    if (!killed) onEnd(child.signalCode === null ? `code ${child.exitCode}` : String(child.signalCode))
  })
  return {
    send(order) {
      if (child.exitCode === null && child.signalCode === null) child.send(order)
    },
    kill() {
      killed = true
      child.kill('SIGKILL')
    },
  }
}

const withoutOurs = (environment: Readonly<Record<string, string | undefined>>) =>
  Object.fromEntries(
    Object.entries(environment).filter(([name]) => !name.startsWith('SERVICE_') && !name.endsWith('_API_KEY')),
  )

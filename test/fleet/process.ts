/** Processes of a fleet, each started on its own and ended with the test that started it. */
import { until } from '../support/eventually.ts'
import { executable } from '../support/executable.ts'
import { cleanEnvironment, collect } from '../support/harness.ts'
import { descendantsOf, isAlive, signal } from '../support/processes.ts'

export interface Running {
  pid(): number
  stdout(): string
  stderr(): string
  /** The exit code, once it has one. */
  exitCode(): number | null
  exited: Promise<number>
  kill(): Promise<void>
  end(name: NodeJS.Signals): Promise<number>
}

const running = new Set<number>()
process.on('exit', () => {
  for (const pid of running) for (const found of [pid, ...descendantsOf(pid)]) signal(found, 'SIGKILL')
})

/** Starts the executable with these words, and nothing in its environment but what is given. */
export const start = async (
  words: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<Running> => startCommand([await executable(), ...words], environment)

export function startCommand(command: readonly string[], environment: Readonly<Record<string, string>>): Running {
  const child = Bun.spawn([...command], {
    env: cleanEnvironment(environment),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  running.add(child.pid)
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)]
  return {
    pid: () => child.pid,
    stdout,
    stderr,
    exitCode: () => child.exitCode,
    exited: child.exited,
    async end(name) {
      signal(child.pid, name)
      return await child.exited
    },
    async kill() {
      const family = stoppedFamily(child.pid)
      for (const pid of family) signal(pid, 'SIGKILL')
      await child.exited
      await until('the process has ended', () => !family.some(isAlive))
      running.delete(child.pid)
    },
  }
}

/** A process and all below it, stopped: none of them can start another, which would be left behind. */
function stoppedFamily(pid: number): number[] {
  for (let family = [pid]; ; ) {
    for (const member of family) signal(member, 'SIGSTOP')
    const now = [pid, ...descendantsOf(pid)]
    if (now.every((member) => family.includes(member))) return now
    family = now
  }
}

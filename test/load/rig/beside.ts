/**
 * Processes that run beside what is measured: the provider and the bare pass-through, each saying its address in its
 * first line.
 */
import { join } from 'node:path'
import { z } from 'zod'
import { eventually } from '../../support/eventually.ts'
import { collect } from '../../support/harness.ts'

export interface Beside extends Disposable {
  url: string
  pid: number
  /** Asks it to end, and waits until it has. */
  ended(): Promise<void>
}

const firstLine = z.object({ url: z.string() })

interface Started {
  env?: Readonly<Record<string, string>>
  /** For Bun. */
  flags?: readonly string[]
}

export const startBeside = (file: string, ...args: readonly string[]): Promise<Beside> => startWith({}, file, ...args)

export async function startWith(
  { env = {}, flags = [] }: Started,
  file: string,
  ...args: readonly string[]
): Promise<Beside> {
  const child = Bun.spawn([process.execPath, ...flags, join(import.meta.dir, file), ...args], {
    // As the gateway has it: how many requests a process may have open at once.
    env: { ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: '65000', ...env },
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const stdout = collect(child.stdout)
  const { url } = await eventually(() => firstLine.parse(JSON.parse(stdout())))
  const ended = async () => {
    child.kill('SIGTERM')
    await child.exited
  }
  return { url, pid: child.pid, ended, [Symbol.dispose]: () => child.kill() }
}

/** How many requests have reached the provider of the bench under the first part of their path. */
export async function requestsSeen({ url }: Beside, path: string): Promise<number> {
  const counts = z.record(z.string(), z.number()).parse(await (await fetch(`${url}/counts`)).json())
  return counts[path] ?? 0
}

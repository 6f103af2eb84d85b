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
}

const firstLine = z.object({ url: z.string() })

export async function startBeside(file: string, ...args: readonly string[]): Promise<Beside> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, file), ...args], {
    // As the gateway has it: how many requests a process may have open at once.
    env: { ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: '65000' },
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const stdout = collect(child.stdout)
  const { url } = await eventually(() => firstLine.parse(JSON.parse(stdout())))
  return { url, pid: child.pid, [Symbol.dispose]: () => child.kill() }
}

/** How many requests have reached the provider of the bench under the first part of their path. */
export async function requestsSeen({ url }: Beside, path: string): Promise<number> {
  const counts = z.record(z.string(), z.number()).parse(await (await fetch(`${url}/counts`)).json())
  return counts[path] ?? 0
}

/** The processes of one gateway: as many workers as the setting says, and the end of those that it no longer wants. */
import { join } from 'node:path'
import type { Settings } from '../../src/config.ts'
import { formerWorkers } from '../../src/lib/worker.ts'
import type { Child, ChildOptions } from './supervisor.ts'

/** Starts the workers, each kept running; the first one first. `more` are further words of the command line. */
export const keepWorkers = (
  { gateway_workers: count }: Settings,
  more: readonly string[],
  keep: (name: ChildOptions['name'], words: readonly string[]) => Child,
): Child[] =>
  Array.from({ length: count }, (_, index) =>
    keep(index === 0 ? 'gateway' : `gateway-${index}`, ['gateway', '--worker', String(index), ...more]),
  )

/** Lets workers of a former start that are wanted no longer report what they had; nobody waits for them. */
export function endFormerWorkers(
  { data, gateway_workers: count }: Settings,
  command: readonly string[],
  environment: ChildOptions['environment'],
  more: readonly string[],
): void {
  for (const index of formerWorkers(join(data, 'gateway'), count)) {
    Bun.spawn([...command, 'gateway', '--worker', String(index), '--farewell', ...more], {
      env: { ...environment },
      stdin: 'ignore',
      stdout: 2,
      stderr: 'inherit',
    }).unref()
  }
}

/**
 * A gateway that now has fewer workers: ships what a removed worker recorded and had not shipped, and returns its
 * shares of limits. Then deletes its directory.
 */
import { rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { startWorker, type WorkerOptions } from '../fleet/agent/gateway-agent.ts'
import { replicaFile } from '../fleet/agent/worker-replica.ts'
import { workerDirectory } from '../lib/worker.ts'

const patienceMilliseconds = 30_000

/** Tries for half a minute; the next start tries again. */
export async function endFormerWorker({
  index,
  data,
  ...options
}: Omit<WorkerOptions, 'dataDirectory' | 'onFenced' | 'onRetired' | 'fetch'> & {
  index: number
  /** The installation's data directory. */
  data: string
}): Promise<void> {
  const gatewayDirectory = join(resolve(data), 'gateway')
  const directory = workerDirectory(gatewayDirectory, index)
  const worker = await startWorker({
    ...options,
    stateFile: options.stateFile ?? replicaFile(gatewayDirectory),
    dataDirectory: directory,
    fetch,
    onFenced: () => process.exit(0),
    onRetired: () => process.exit(0),
  })
  const { clock } = options
  const giveUp = clock.monotonic() + patienceMilliseconds
  const isReported = () => worker.counters.connected === 1 && worker.counters.outboxUnacknowledged === 0
  while (!isReported() && clock.monotonic() < giveUp) await Bun.sleep(50)
  const isWhole = isReported()
  await worker.drain()
  if (isWhole) rmSync(directory, { recursive: true, force: true })
}

/**
 * The workers of one gateway: processes that share a port, so that a host's cores are used (src/README.md, The
 * processes). Each is a worker of its own with a directory of its own; they share the state file and nothing else, and
 * the kernel deals connections out among them.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

export interface Worker {
  /** From 0; the first one keeps a sidecar's replica for all. */
  index: number
  count: number
}

const others = 'workers'

/**
 * The directory for data that a worker must not lose: the first worker uses the one of a gateway with a single process.
 */
export const workerDirectory = (gatewayDirectory: string, index: number): string =>
  index === 0 ? gatewayDirectory : join(gatewayDirectory, others, String(index))

/** Former workers beyond the present count: their records may not have been reported yet. */
export function formerWorkers(gatewayDirectory: string, count: number): number[] {
  let names: string[]
  try {
    names = readdirSync(join(gatewayDirectory, others))
  } catch {
    // There was never more than one.
    return []
  }
  return names.filter((name) => /^\d{1,4}$/.test(name) && Number(name) >= count).map(Number)
}

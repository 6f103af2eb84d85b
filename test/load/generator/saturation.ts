/**
 * Keeps a target busy: a fixed number of connections, each sending its next request when the last was answered. What it
 * counts is exact, so that processor time can be divided by it.
 */
import { requestBody, type Target } from '../rig/target.ts'
import { Connections, requestBytes } from './connections.ts'

export interface Saturation {
  /** Answered 200. */
  requests: number
  failed: number
  seconds: number
}

export async function saturate(target: Target, connections: number, seconds: number): Promise<Saturation> {
  using open = new Connections(target)
  await open.open(connections)
  const request = requestBytes(target, requestBody(false))
  const startedAt = performance.now()
  const endsAt = startedAt + seconds * 1000
  let [requests, failed] = [0, 0]
  const connection = async () => {
    while (performance.now() < endsAt) {
      const { ok } = await open.send(request)
      if (ok) requests++
      else failed++
    }
  }
  await Promise.all(Array.from({ length: connections }, connection))
  return { requests, failed, seconds: (performance.now() - startedAt) / 1000 }
}

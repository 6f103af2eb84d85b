/**
 * Lets the workers of one gateway find each other, because a connection reaches any of them: a worker that is asked
 * for metrics gives those of all, and an MCP session is served by the worker that has it
 * (`src/gateway/mcp/other-worker.ts`). Each listens on loopback for its siblings, and stores its address and a secret
 * in a file of its directory (0600). A sibling that does not answer is left out; its next start writes a new address.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Registry } from 'prom-client'
import { z } from 'zod'
import type { ForwardedRequest, SiblingWorkers } from '../gateway/mcp/sibling-workers.ts'
import type { Listener } from '../gateway/server.ts'
import { sameText } from '../lib/text/same-text.ts'
import { type Worker, workerDirectory } from '../lib/worker.ts'
import { joinedMetrics, type ProcessMetrics, processMetrics } from '../telemetry/joined-metrics.ts'

const addressFile = 'sibling.json'
/** `start` identifies one start of a worker: sessions of an earlier one are gone. */
const addressSchema = z.object({ port: z.number().int(), secret: z.string(), start: z.string() })
type Address = z.infer<typeof addressSchema>
const secretHeader = 'x-gatehouse-sibling'
const figuresPath = '/metrics'
const sessionForm = /^(\d{1,4})\.([\w-]{1,32})\./
const patienceMilliseconds = 1000

export interface Siblings extends SiblingWorkers {
  /** The figures of all workers. */
  metrics(): Promise<string>
  close(): void
}

export interface SiblingOptions {
  worker: Worker
  /** The gateway's directory, with a directory for each worker. */
  directory: string
  secret: string
  /** Different for each start. */
  start: string
  /** This worker's own metrics. */
  own(): Registry
  /** Answers a request of an MCP session that a sibling forwarded. */
  answer(request: Request, server: Listener): Promise<Response>
}

export function joinSiblings({ worker, directory, secret, start, own, answer }: SiblingOptions): Siblings {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    development: false,
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    async fetch(request, server) {
      if (!sameText(request.headers.get(secretHeader) ?? '', secret)) return new Response(null, { status: 404 })
      // Forwarded unchanged between siblings: policy conditions may read what a caller sent.
      request.headers.delete(secretHeader)
      if (new URL(request.url).pathname !== figuresPath) return await answer(request, server)
      return Response.json(await own().getMetricsAsJSON())
    },
  })
  const file = (index: number) => join(workerDirectory(directory, index), addressFile)
  writeFileSync(file(worker.index), JSON.stringify({ port: server.port, secret, start }), { mode: 0o600 })
  const known = new Map<number, Address>()
  /** The address of that start of a sibling; null if it is gone. */
  const addressOf = (index: number, started: string): Address | null => {
    if (known.get(index)?.start !== started) {
      const address = readAddress(file(index))
      if (address !== null) known.set(index, address)
    }
    const address = known.get(index)
    return address?.start === started ? address : null
  }
  return {
    sessionPrefix: `${worker.index}.${start}.`,
    ownerOf(sessionId) {
      const [, number, started] = sessionForm.exec(sessionId) ?? []
      const index = Number(number)
      if (started === undefined || index === worker.index || index >= worker.count) return null
      const address = addressOf(index, started)
      return address === null ? null : (request) => pass(address, request)
    },
    homeOf(caller) {
      const index = Number(BigInt(Bun.hash(caller)) % BigInt(worker.count))
      if (index === worker.index) return null
      const address = known.get(index) ?? readAddress(file(index))
      if (address === null) return null
      known.set(index, address)
      return async (request) => {
        try {
          return await pass(address, request)
        } catch (error) {
          // The next request reads the address again.
          known.delete(index)
          throw error
        }
      }
    },
    async metrics() {
      const workers = Array.from({ length: worker.count }, async (_, index) => {
        const figures = index === worker.index ? await own().getMetricsAsJSON() : await figuresOf(file(index))
        return [String(index), figures] as const
      })
      return await joinedMetrics(await Promise.all(workers))
    },
    close() {
      rmSync(file(worker.index), { force: true })
      void server.stop(true)
    },
  }
}

/** Null where there is none: it is starting or has ended. */
function readAddress(file: string): Address | null {
  try {
    return addressSchema.parse(JSON.parse(readFileSync(file, 'utf8')))
  } catch {
    // A file of an earlier version has no address either.
    return null
  }
}

function pass({ port, secret }: Address, { method, headers, body, signal }: ForwardedRequest): Promise<Response> {
  const passed = new Headers(headers)
  passed.set(secretHeader, secret)
  return fetch(`http://127.0.0.1:${port}/mcp`, { method, headers: passed, body, signal, timeout: false })
}

/** Empty if it does not answer. */
async function figuresOf(file: string): Promise<ProcessMetrics> {
  const address = readAddress(file)
  if (address === null) return []
  try {
    const answer = await fetch(`http://127.0.0.1:${address.port}${figuresPath}`, {
      headers: { [secretHeader]: address.secret },
      signal: AbortSignal.timeout(patienceMilliseconds),
    })
    return answer.ok ? processMetrics.parse(await answer.json()) : []
  } catch {
    // It has ended. The metrics of the others are still useful.
    return []
  }
}

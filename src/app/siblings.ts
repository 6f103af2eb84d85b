/**
 * The workers of one gateway find each other: whoever is asked for figures gives those of all, because a connection
 * reaches any of them. Each listens on loopback for its siblings alone, and keeps where, with the secret that lets them
 * in, in a file of its directory (0600). A sibling that does not answer is left out: its next start says where it is.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { sameText } from '../lib/same-text.ts'
import { type Worker, workerDirectory } from '../lib/worker.ts'
import { joinedText } from '../telemetry/exposition.ts'

const addressFile = 'sibling.json'
const addressSchema = z.object({ port: z.number().int(), secret: z.string() })
const secretHeader = 'x-gatehouse-sibling'
const patienceMilliseconds = 1000

export interface Siblings {
  /** The figures of all workers. */
  metrics(): Promise<string>
  close(): void
}

export function joinSiblings({
  worker,
  directory,
  secret,
  own,
}: {
  worker: Worker
  /** The gateway's directory, in which each worker has its own. */
  directory: string
  secret: string
  /** This worker's own figures. */
  own(): string
}): Siblings {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    development: false,
    fetch: (request) =>
      sameText(request.headers.get(secretHeader) ?? '', secret)
        ? new Response(own())
        : new Response(null, { status: 404 }),
  })
  const file = (index: number) => join(workerDirectory(directory, index), addressFile)
  writeFileSync(file(worker.index), JSON.stringify({ port: server.port, secret }), { mode: 0o600 })
  return {
    async metrics() {
      const texts = await Promise.all(
        Array.from({ length: worker.count }, async (_, index): Promise<[string, string]> => {
          return [String(index), index === worker.index ? own() : await figuresOf(file(index))]
        }),
      )
      return joinedText(new Map(texts))
    },
    close() {
      rmSync(file(worker.index), { force: true })
      void server.stop(true)
    },
  }
}

/** Empty where it does not answer. */
async function figuresOf(file: string): Promise<string> {
  try {
    const { port, secret } = addressSchema.parse(JSON.parse(readFileSync(file, 'utf8')))
    const answer = await fetch(`http://127.0.0.1:${port}/`, {
      headers: { [secretHeader]: secret },
      signal: AbortSignal.timeout(patienceMilliseconds),
    })
    return answer.ok ? await answer.text() : ''
  } catch {
    // It is starting or has ended: the others' figures are worth having.
    return ''
  }
}

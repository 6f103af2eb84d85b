/**
 * One message to many processes, and one small request back from each: what is left of a revocation without all that it
 * is for. Started with an address, this file is one of those processes.
 */
import { readEventStream } from '../../src/fleet/protocol/event-stream.ts'

export interface PingPong extends AsyncDisposable {
  /** Resolves when every process has answered. */
  round(): Promise<void>
}

/** Starts so many processes and waits until all of them listen. */
export async function startPingPong(followers: number): Promise<PingPong> {
  const streams = new Set<ReadableStreamDefaultController<string>>()
  let waiting = followers
  let all = Promise.withResolvers<void>()
  const listening = Promise.withResolvers<void>()
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      if (request.method === 'POST') {
        await request.text()
        waiting -= 1
        if (waiting === 0) all.resolve()
        return Response.json({})
      }
      const body = new ReadableStream<string>({
        start(controller) {
          streams.add(controller)
          if (streams.size === followers) listening.resolve()
        },
      })
      return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
    },
  })
  const command = [process.execPath, import.meta.path, server.url.href]
  const children = Array.from({ length: followers }, () => Bun.spawn(command, { stdin: 'ignore', stdout: 'ignore' }))
  await listening.promise
  return {
    async round() {
      waiting = followers
      all = Promise.withResolvers()
      for (const stream of streams) stream.enqueue('data: {"round":true}\n\n')
      await all.promise
    },
    async [Symbol.asyncDispose]() {
      for (const child of children) child.kill('SIGKILL')
      await Promise.all(children.map(({ exited }) => exited))
      await server.stop(true)
    },
  }
}

async function follow(address: string): Promise<void> {
  const { body } = await fetch(address)
  if (body === null) throw new Error('The stream has no body')
  const answer = () => void fetch(address, { method: 'POST', body: '{}' }).then((response) => response.text())
  await readEventStream(body, answer, () => undefined)
}

if (import.meta.main) await follow(process.argv[2] ?? '')

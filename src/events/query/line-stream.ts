import { Failure } from '../../failure.ts'

/**
 * Streams lines of JSON, one answer at a time; each line is made when the one before was taken. Throws `conflict` with
 * `busy` during another answer. An answer whose client has left does not block the next.
 */
export function lineStreams(busy: string): (signal: AbortSignal, lines: AsyncGenerator<object>) => Response {
  let running: AbortSignal | null = null
  return (signal, lines) => {
    if (running !== null && !running.aborted) throw new Failure('conflict', { message: busy })
    running = signal
    // Another answer may have begun by then, so only this one's end counts.
    return streamed(lines, () => {
      if (running === signal) running = null
    })
  }
}

function streamed(lines: AsyncGenerator<object>, ended: () => void): Response {
  const encoder = new TextEncoder()
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await lines.next()
        if (!done) return controller.enqueue(encoder.encode(`${JSON.stringify(value)}\n`))
        ended()
        controller.close()
      } catch (error) {
        ended()
        throw error
      }
    },
    async cancel() {
      ended()
      await lines.return(undefined)
    },
  })
  return new Response(body, { headers: { 'content-type': 'application/x-ndjson; charset=utf-8' } })
}

/** The body of an answer that must be understood before it is passed on, held only up to so many bytes. */
import { withoutLength } from './send-request.ts'

/** Longer errors are passed on without being understood. */
export const errorBytes = 64 * 1024

/**
 * The body's text, or null if it is longer than `limit` bytes. `answer` returns the same bytes from the beginning, for
 * a reader that limits them itself.
 */
export async function heldBody(from: Response, limit: number): Promise<{ text: string | null; answer: Response }> {
  const reader = (from.body ?? new Blob([]).stream()).getReader()
  const held: Uint8Array[] = []
  let length = 0
  const again = (body: Uint8Array | ReadableStream<Uint8Array>) =>
    new Response(body, { status: from.status, headers: withoutLength(from.headers) })
  for (;;) {
    const { done, value } = await reader.read()
    if (done) {
      const bytes = Buffer.concat(held)
      return { text: bytes.toString(), answer: again(bytes) }
    }
    held.push(value)
    length += value.length
    if (length > limit) break
  }
  const rest = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const piece = held.shift()
        if (piece !== undefined) return controller.enqueue(piece)
        const { done, value } = await reader.read()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
  return { text: null, answer: again(rest) }
}

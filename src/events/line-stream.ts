/** An answer of lines of JSON, each made when the one before has been taken. `ended` is told of any end, once. */
export function lineStream(lines: AsyncGenerator<object>, ended: () => void): Response {
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

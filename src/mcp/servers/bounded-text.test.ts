import { expect, test } from 'bun:test'
import { boundedText } from './bounded-text.ts'

test('reads a chunked answer no further than the limit, whatever its Content-Length says', async () => {
  let pulled = 0
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      pulled += 1
      if (pulled > 100) controller.close()
      else controller.enqueue(new Uint8Array(1000))
    },
  })
  const headers = { 'content-length': '10', 'transfer-encoding': 'chunked' }
  await expect(boundedText(new Response(body, { headers }), 3000)).rejects.toMatchObject({
    code: 'mcp.result_too_large',
  })
  expect(pulled).toBeLessThan(10)
  expect(await boundedText(new Response('short', { headers: { 'content-length': '5' } }), 3000)).toBe('short')
})

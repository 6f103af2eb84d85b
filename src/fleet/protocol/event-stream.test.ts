import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { readEventStream } from './event-stream.ts'

test('gives the same events wherever the bytes are split', async () => {
  const text =
    ':\n\nevent: hello\ndata: {"a":"é😀"}\n\ndata:one\r\ndata: two\r\n\r\n:\n\nid: 1\n\ndata: last\n\ndata: cut off'
  const bytes = new TextEncoder().encode(text)
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(bytes.length), { maxLength: 8 }), async (cuts) => {
      const at = [0, ...cuts.sort((one, other) => one - other), bytes.length]
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          for (const [index, from] of at.entries()) controller.enqueue(bytes.slice(from, at[index + 1] ?? from))
          controller.close()
        },
      })
      const events: string[] = []
      await readEventStream(
        body,
        (data) => events.push(data),
        () => undefined,
      )
      expect(events).toEqual(['{"a":"é😀"}', 'one\ntwo', 'last'])
    }),
  )
})

import { afterAll, expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { announcedLength } from './announced-length.ts'

const long = 'x'.repeat(5000)
const packed = gzipSync(long)
const answers: Record<string, readonly (string | Uint8Array)[]> = {
  '/plain': ['Content-Length: 5000\r\n\r\n', long],
  '/chunked': ['Content-Length: 10\r\nTransfer-Encoding: chunked\r\n\r\n1388\r\n', long, '\r\n0\r\n\r\n'],
  '/packed': [`Content-Encoding: gzip\r\nContent-Length: ${packed.length}\r\n\r\n`, packed],
}
const server = Bun.listen({
  hostname: '127.0.0.1',
  port: 0,
  socket: {
    data(socket, bytes) {
      const [, path = ''] = bytes.toString().split(' ')
      const parts = ['HTTP/1.1 200 OK\r\n', ...(answers[path] ?? [])]
      socket.end(Buffer.concat(parts.map((part) => Buffer.from(part))))
    },
  },
})
afterAll(() => server.stop(true))

test('announces a length only if the body cannot be longer', async () => {
  const lengths: unknown[] = []
  for (const path of Object.keys(answers)) {
    const answer = await fetch(`http://127.0.0.1:${server.port}${path}`)
    lengths.push([announcedLength(answer.headers), (await answer.text()).length])
  }
  expect(lengths).toEqual([
    [5000, 5000],
    [null, 5000],
    [null, 5000],
  ])
  expect(announcedLength(new Headers())).toBeNull()
})

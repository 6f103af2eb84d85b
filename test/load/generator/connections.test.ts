import { expect, test } from 'bun:test'
import { type Answered, Connections, requestBytes } from './connections.ts'

interface Exchanged extends Answered {
  body: string
}

/** Sends so many requests one after the other to a server that answers like this. */
async function exchange(answer: (body: string) => Response, bodies: readonly string[]): Promise<Exchanged[]> {
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: async (request) => answer(await request.text()) })
  const target = { name: 'test', url: `${server.url.origin}/path`, token: 'secret' }
  using connections = new Connections(target)
  const exchanged: Exchanged[] = []
  for (const sent of bodies) {
    let body = ''
    const answered = await connections.send(requestBytes(target, sent), (text) => {
      body += text
    })
    exchanged.push({ ...answered, body })
  }
  await server.stop(true)
  return exchanged
}

const streamOf = (frames: readonly string[]) =>
  new ReadableStream({
    async start(controller) {
      for (const frame of frames) {
        controller.enqueue(Buffer.from(frame))
        await Bun.sleep(1)
      }
      controller.close()
    },
  })

test('reads answers with a length and chunked ones in turn on one connection, each to its end', async () => {
  const answer = (body: string) =>
    new Response(body === 'stream' ? streamOf(['data: a\n\n', 'data: [DONE]\n\n']) : body)
  const [first, second, third] = await exchange(answer, ['whole', 'stream', ''])
  expect(first).toMatchObject({ ok: true, body: 'whole' })
  expect(second?.ok).toBe(true)
  expect(second?.body).toContain('data: a\n\n')
  expect(second?.end).toContain('data: [DONE]\n\n')
  expect(third).toMatchObject({ ok: true, body: '' })
})

test('reports a status other than 200 or an early close as not ok', async () => {
  expect(await exchange(() => new Response('busy', { status: 503 }), ['a'])).toMatchObject([
    { ok: false, body: 'busy' },
  ])
  const server = Bun.listen({
    port: 0,
    hostname: '127.0.0.1',
    socket: { data: (socket) => void socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf') },
  })
  const target = { name: 'test', url: `http://127.0.0.1:${server.port}/`, token: 'secret' }
  using connections = new Connections(target)
  expect(await connections.send(requestBytes(target, '{}'))).toMatchObject({ ok: false })
  server.stop(true)
})

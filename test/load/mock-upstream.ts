/**
 * The provider of the bench, a process of its own: the same short answer at once, or a stream of frames at an even
 * pace. Counts requests by the first part of their path, so that each path through it can be counted apart. Says its
 * address in one line on standard output.
 */
import { chatAnswer, chatStream } from '../fakes/chat.ts'
import { cut, splitPlans } from '../fakes/splits.ts'

const framePauseMs = 20
const answer = chatAnswer({ model: 'bench-model' })
const stream = chatStream({ model: 'bench-model' })
const frames = cut(stream, splitPlans['at every frame']?.(stream) ?? [])
const counts: Record<string, number> = {}

const streamed = () =>
  new Response(
    new ReadableStream({
      async start(controller) {
        for (const frame of frames) {
          controller.enqueue(frame)
          await Bun.sleep(framePauseMs)
        }
        controller.close()
      },
    }),
    { headers: { 'content-type': 'text/event-stream' } },
  )

const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  idleTimeout: 0,
  async fetch(request) {
    const [, , , path = ''] = request.url.split('/')
    if (path === 'counts') return Response.json(counts)
    counts[path] = (counts[path] ?? 0) + 1
    const body = await request.text()
    if (body.includes('"stream":true')) return streamed()
    return new Response(answer, { headers: { 'content-type': 'application/json' } })
  },
})
console.log(JSON.stringify({ url: server.url.origin }))

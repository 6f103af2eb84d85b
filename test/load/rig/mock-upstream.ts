/**
 * The provider of the bench, a process of its own: the same short answer at once, or a stream. A stream is short and
 * fast unless the request says `max_tokens`: then it has so many frames of text, at the pace of a provider that
 * generates, or with the pause that `user` says. Each frame is a write of its own. Counts requests by the first part of
 * their path, so that each path through it can be counted apart. Says its address in one line on standard output.
 */
import { chatAnswer, chatStream } from '../../fakes/chat.ts'
import { cut, splitPlans } from '../../fakes/splits.ts'
import { firstText, heldPauseMs } from './target.ts'

const shortPauseMs = 20
const model = 'bench-model'
const answer = chatAnswer({ model })
const counts: Record<string, number> = {}

const framesOf = (stream: Buffer): Uint8Array[] => cut(stream, splitPlans['at every frame']?.(stream) ?? [])
const shortStream = framesOf(chatStream({ model }))
const longStreams = new Map<number, Uint8Array[]>()

/** What comes before the first text comes with it. */
function longStream(tokens: number): Uint8Array[] {
  const known = longStreams.get(tokens)
  if (known !== undefined) return known
  const parts = Array.from({ length: tokens }, (_, index) => (index === 0 ? firstText : 'more, '))
  const frames = framesOf(chatStream({ model, parts }))
  const paced = [
    Buffer.concat(frames.slice(0, 3)),
    ...frames.slice(3, 2 + tokens),
    Buffer.concat(frames.slice(2 + tokens)),
  ]
  longStreams.set(tokens, paced)
  return paced
}

const streamed = (frames: readonly Uint8Array[], pauseMs: number) =>
  new Response(
    new ReadableStream({
      async start(controller) {
        for (const [index, frame] of frames.entries()) {
          if (index > 0) await Bun.sleep(pauseMs)
          controller.enqueue(frame)
        }
        controller.close()
      },
    }),
    { headers: { 'content-type': 'text/event-stream' } },
  )

function streamFor(body: string): Response {
  const tokens = Number(/"max_tokens":(\d+)/.exec(body)?.[1] ?? 0)
  const pauseMs = Number(/"user":"pause (\d+)"/.exec(body)?.[1] ?? heldPauseMs)
  return tokens > 0 ? streamed(longStream(tokens), pauseMs) : streamed(shortStream, shortPauseMs)
}

const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  idleTimeout: 0,
  async fetch(request) {
    const [, , , path = ''] = request.url.split('/')
    if (path === 'counts') return Response.json(counts)
    counts[path] = (counts[path] ?? 0) + 1
    const body = await request.text()
    if (body.includes('"stream":true')) return streamFor(body)
    return new Response(answer, { headers: { 'content-type': 'application/json' } })
  },
})
console.log(JSON.stringify({ url: server.url.origin }))

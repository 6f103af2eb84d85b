import { expect, test } from 'bun:test'
import { errorBytes } from './held-body.ts'
import { gemini } from './kinds/gemini.ts'
import type { UpstreamCall } from './provider.ts'

const call: UpstreamCall = {
  family: 'chat',
  model: 'm',
  stream: false,
  body: Buffer.from('{}'),
  contentType: 'application/json',
  headers: {},
  signal: new AbortController().signal,
  answerLimit: 1_000_000,
}
const provider = {
  ...{ id: 'p', name: 'p', kind: 'gemini', baseUrl: null, apiKey: 'k', headers: {} },
  allowUnlistedModels: true,
}

test('reads a refusal for its retry time up to a limit, and passes it on whole', async () => {
  const delay = { error: { details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34.07s' }] } }
  const short = await gemini.send(provider, call, async () => Response.json(delay, { status: 429 }))
  expect([short.headers.get('retry-after'), await short.json()]).toEqual(['35', delay])

  const piece = new Uint8Array(1024).fill(97)
  let pulled = 0
  const endless = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        pulled += 1
        if (pulled > 200) controller.close()
        else controller.enqueue(piece)
      },
    },
    { highWaterMark: 0 },
  )
  const long = await gemini.send(provider, call, async () => new Response(endless, { status: 503 }))
  expect(pulled).toBeLessThan(errorBytes / piece.length + 3)
  expect(long.headers.get('retry-after')).toBeNull()
  expect((await long.bytes()).length).toBe(200 * piece.length)
})

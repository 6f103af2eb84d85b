import { afterEach, beforeEach, expect, test } from 'bun:test'
import { startTestGateway, type TestGateway, waitUntil } from '../testing/gateway.ts'

let running: TestGateway
let answer: () => Response
const caps = { answer_limit_bytes: 400_000, idle_timeout_seconds: 1, first_byte_timeout_seconds: 1, drain_seconds: 0 }
beforeEach(async () => {
  running = await startTestGateway(() => answer(), caps)
})
afterEach(() => running.stop())

const speak = (signal?: AbortSignal) =>
  fetch(`${running.url}/v1/audio/speech`, {
    method: 'POST',
    headers: { authorization: `Bearer ${running.secret}`, 'content-type': 'application/json' },
    body: '{"model":"tts","input":"hello","voice":"x"}',
    ...(signal ? { signal } : {}),
  })

type Pieces = (number | 'stall' | 'break')[]

/** Audio in pieces of these sizes, each byte telling its place; it may stop in between and be silent, or break off. */
function audio(pieces: Pieces, headers: Record<string, string> = {}): Response {
  let at = 0
  const left = [...pieces]
  const body = new ReadableStream({
    async pull(controller) {
      const next = left.shift()
      await Bun.sleep(5)
      if (next === undefined) controller.close()
      else if (next === 'stall') await Bun.sleep(5000)
      else if (next === 'break') controller.error(new Error('broken off by the test'))
      else {
        controller.enqueue(Uint8Array.from({ length: next }, (_, index) => (at + index) % 251))
        at += next
      }
    },
  })
  return new Response(body, { headers: { 'content-type': 'audio/mpeg', ...headers } })
}

/** So many that however they are joined on their way, the first are not the last too. */
const manyPieces: Pieces = Array.from({ length: 40 }, () => 100)

const bytesOf = (length: number) => Uint8Array.from({ length }, (_, index) => index % 251)
const outcomes = () => running.worker.journal.outcomes()

/** Reads what comes, and whether it came to an end. */
async function read(response: Response): Promise<{ length: number; ended: boolean }> {
  let length = 0
  try {
    for await (const bytes of response.body ?? []) length += bytes.length
    return { length, ended: true }
  } catch {
    return { length, ended: false }
  }
}

test('passes audio byte for byte with its type and records one outcome', async () => {
  answer = () => audio([100, 1, 5000, 70_000], { 'content-disposition': 'attachment', 'set-cookie': 'a=b' })
  const response = await speak()
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-type': 'audio/mpeg',
    'content-disposition': 'attachment',
    'x-service-verdict': 'ALLOW',
  })
  expect(response.headers.get('set-cookie')).toBeNull()
  expect(await response.bytes()).toEqual(bytesOf(75_101))
  expect(outcomes()).toMatchObject([{ verdict: 'allow', reason_code: 'ok' }])
})

test('passes pieces as they arrive and holds the last one until the outcome is written', async () => {
  running.worker.journal.closeDelay = 60
  answer = () => audio([10, 10, 10])
  const response = await speak()
  let length = 0
  let closedBefore = -1
  for await (const bytes of response.body ?? []) {
    if (length + bytes.length === 30) closedBefore = running.worker.journal.closed.size
    length += bytes.length
  }
  expect([length, closedBefore]).toEqual([30, 1])
})

test('keeps the Content-Length of a small answer', async () => {
  answer = () => new Response(bytesOf(64), { headers: { 'content-type': 'audio/wav' } })
  const response = await speak()
  expect(response.headers.get('content-length')).toBe('64')
  expect(await response.bytes()).toEqual(bytesOf(64))
})

test('passes an empty answer as an answer', async () => {
  answer = () => audio([])
  const response = await speak()
  expect([response.status, (await response.bytes()).length]).toEqual([200, 0])
  expect(outcomes()).toMatchObject([{ reason_code: 'ok' }])
})

test('aborts the connection when an answer breaks, stalls or grows too long', async () => {
  const cases: [Pieces, string][] = [
    [[...manyPieces, 'break'], 'provider.interrupted'],
    [[...manyPieces, 'stall'], 'provider.timeout'],
    [[...manyPieces, 200_000, 200_000, 100], 'provider.answer_too_large'],
  ]
  for (const [pieces, reason] of cases) {
    answer = () => audio(pieces)
    const { ended } = await read(await speak())
    expect([reason, ended]).toEqual([reason, false])
    await waitUntil(() => outcomes().at(-1)?.reason_code === reason)
  }
  expect(outcomes().map(({ verdict }) => verdict)).toEqual(['error', 'error', 'error'])
})

test('answers an error when the failure precedes the first byte', async () => {
  const cases: [() => Response, number][] = [
    [() => audio(['break']), 502],
    [() => audio(['stall']), 502],
    [() => new Response('<html>', { headers: { 'content-type': 'text/html' } }), 502],
    [() => new Response('{"error":{"message":"no"}}', { status: 400 }), 400],
  ]
  for (const [one, status] of cases) {
    answer = one
    const response = await speak()
    expect(response.status).toBe(status)
    expect(await response.json()).toHaveProperty('error')
  }
})

test('cancels the provider call when the client disconnects in the middle, and records it', async () => {
  answer = () => audio([...manyPieces, 'stall'])
  const leaving = new AbortController()
  const reader = (await speak(leaving.signal)).body?.getReader()
  await reader?.read()
  leaving.abort()
  await waitUntil(() => outcomes().at(-1)?.reason_code === 'client.left')
  await waitUntil(() => running.aborted() === 1)
})

test('leaves the answer unfinished when its outcome cannot be recorded', async () => {
  answer = () => audio(manyPieces)
  running.worker.journal.full.close = true
  expect((await read(await speak())).ended).toBe(false)
})

test('passes a transcript as plain text or subtitles unchanged', async () => {
  const subtitles = '1\n00:00:00,000 --> 00:00:01,000\nGrüße\n'
  answer = () => new Response(subtitles, { headers: { 'content-type': 'text/plain; charset=utf-8' } })
  const form = new FormData()
  form.append('model', 'whisper')
  form.append('file', new File(['x'], 'a.wav'))
  const response = await fetch(`${running.url}/v1/audio/transcriptions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${running.secret}` },
    body: form,
  })
  expect([response.status, await response.text()]).toEqual([200, subtitles])
})

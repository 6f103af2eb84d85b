import { expect, test } from 'bun:test'
import { systemClock } from '../lib/clock.ts'
import { readControlPlane } from './control-plane-facts.ts'
import { createProbe } from './probe.ts'

const probe = createProbe({ fetch, clock: systemClock, withinMs: 10_000 })
const impatient = createProbe({ fetch, clock: systemClock, withinMs: 200 })

function serve(answer: (request: Request) => Response | Promise<Response>) {
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: answer })
  return { url: server.url.origin, [Symbol.asyncDispose]: () => server.stop(true) }
}

test('gives up soon on a server that hangs before or within its answer', async () => {
  await using mute = serve(() => new Promise(() => undefined))
  await using halting = serve(
    () =>
      new Response(
        new ReadableStream({
          start: (controller) => controller.enqueue(new TextEncoder().encode('{')),
        }),
      ),
  )
  const reason = 'no answer within 0.2 s'
  expect(await Promise.all([impatient(mute.url), impatient(halting.url)])).toEqual([
    { kind: 'silent', reason },
    { kind: 'silent', reason },
  ])
})

test('reports a closed port and an answer that is no JSON', async () => {
  const gone = serve(() => new Response('bye'))
  await gone[Symbol.asyncDispose]()
  expect(await probe(gone.url)).toEqual({ kind: 'silent', reason: 'nothing listens there' })
  await using other = serve(() => new Response('<html>', { status: 418, headers: { date: 'never' } }))
  expect(await probe(other.url)).toMatchObject({ kind: 'answered', status: 418, body: undefined, aheadMs: null })
})

test('compares clocks by the Date header of the answer', async () => {
  const ahead = new Date(Date.now() + 600_000).toUTCString()
  await using server = serve(() => new Response('{}', { headers: { date: ahead } }))
  const answer = await probe(server.url)
  expect(answer.kind === 'answered' && Math.abs((answer.aheadMs ?? 0) - 600_000)).toBeLessThan(60_000)
})

test('sends a token only to its own address and follows no redirect', async () => {
  const asked: string[] = []
  await using elsewhere = serve((request) => {
    asked.push(`elsewhere ${request.headers.get('authorization')}`)
    return Response.json({})
  })
  await using server = serve((request) => {
    asked.push(`${new URL(request.url).pathname} ${request.headers.get('authorization')}`)
    return Response.redirect(elsewhere.url)
  })
  const facts = await readControlPlane(probe, { url: server.url, token: 'gth_secret', inTheClear: false })
  expect(asked.toSorted()).toEqual(['/healthz null', '/readyz null', '/v1/auth/session Bearer gth_secret'])
  expect(facts.caller).toEqual({ kind: 'refused', status: 302, code: 'no code' })
})

test('sends no token over a network in clear text unless that is allowed', async () => {
  const asked: (string | undefined)[] = []
  const memoized = async (_url: string, token?: string) => {
    asked.push(token)
    return { kind: 'silent', reason: 'x' } as const
  }
  const plane = { url: 'http://10.0.0.1:7070', token: 'gth_secret' }
  expect((await readControlPlane(memoized, { ...plane, inTheClear: false })).caller).toEqual({ kind: 'kept' })
  expect(asked).toEqual([undefined, undefined])
  await readControlPlane(memoized, { ...plane, inTheClear: true })
  expect(asked).toContain('gth_secret')
})

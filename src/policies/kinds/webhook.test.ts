import { afterAll, beforeEach, expect, test } from 'bun:test'
import type { TextSlot } from '../../languages/reading/texts/text-slot.ts'
import { ModelView, RequestView, TokenView } from '../conditions/context.ts'
import type { Decision, PolicyTools, Subject } from './kind.ts'
import { webhook } from './webhook.ts'

let answer: (request: Request) => Response | Promise<Response> = () => new Response('{}')
const seen: { url: string; host: string | null; body: unknown }[] = []
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  idleTimeout: 0,
  async fetch(request) {
    seen.push({ url: request.url, host: request.headers.get('host'), body: await request.json() })
    return answer(request)
  },
})
afterAll(() => server.stop(true))
beforeEach(() => {
  seen.length = 0
  answer = () => Response.json({ verdict: 'allow' })
})

const slot = (text: string): TextSlot => ({ member: 'messages', kind: 'content', role: 'user', text, replace() {} })

const subject = (...texts: string[]): Subject => {
  const slots = texts.map(slot)
  const parts = { family: 'chat', model: 'm', stream: false, sessionId: null, body: {}, headers: new Headers() }
  const facts = { model: 'm', stream: false, inputEstimate: 1, outputLimit: null, choices: 1 }
  return {
    stage: 'pre_request',
    context: {
      request: new RequestView({ ...parts, texts: () => slots }),
      response: null,
      token: new TokenView({
        id: 'token-1',
        purpose: 'general',
        roles: ['member'],
        teamId: null,
        userId: null,
        gatewayId: null,
        metadata: { secret: 'not told' },
      }),
      model: new ModelView('m', 'p'),
      now: new Date(0),
    },
    facts: { ...facts, beyondBody: false, unbounded: null, sessionId: null },
    body: {},
    requestBody: {},
    texts: slots,
  }
}

const tools = (change: Partial<PolicyTools> = {}): PolicyTools => ({
  fetch,
  resolve: async () => ['127.0.0.1'],
  privateWebhooks: true,
  throwIfCut: () => undefined,
  signal: new AbortController().signal,
  ...change,
})

const address = `http://localhost:${server.port}/check`

async function ask(of = subject('hello'), use = tools(), config: object = {}): Promise<Decision | null> {
  const compiled = webhook.compile({ url: address, timeout_ms: 10_000, ...config }, { stages: ['pre_request'] })
  if (compiled.form !== 'whole') throw new Error('A webhook looks at the whole')
  return await compiled.consider(of, use)
}

test('it is shown the texts and who asks, and no metadata', async () => {
  expect(await ask(subject('one', 'two'))).toBeNull()
  expect(seen[0]?.body).toMatchObject({
    stage: 'pre_request',
    request: { family: 'chat', model: 'm', texts: [{ text: 'one' }, { text: 'two' }] },
    token: { id: 'token-1', team_id: null, user_id: null, gateway_id: null },
    model: { id: 'm', provider: 'p' },
  })
  expect(JSON.stringify(seen)).not.toContain('not told')
})

test('its verdict is the policy’s, and its texts take their places', async () => {
  answer = () => Response.json({ verdict: 'block', reason_code: 'opa.denied', message: 'Not today' })
  expect(await ask()).toMatchObject({ verdict: 'block', reasonCode: 'opa.denied', message: 'Not today' })
  answer = () => Response.json({ verdict: 'redact', texts: [{ index: 1, text: '[NAME]' }] })
  const redacted = await ask(subject('one', 'two'))
  expect(redacted).toMatchObject({ verdict: 'redact', changes: [{ slot: { text: 'two' }, text: '[NAME]' }] })
})

const lies: [string, () => Response | Promise<Response>][] = [
  ['another status', () => Response.json({ verdict: 'allow' }, { status: 500 })],
  ['a redirect', () => Response.redirect(`http://127.0.0.1:${server.port}/elsewhere`)],
  ['no JSON', () => new Response('<html>')],
  ['two verdicts', () => new Response('{"verdict":"block","verdict":"allow"}')],
  ['two verdicts in other letters', () => new Response('{"Verdict":"block","verdict":"allow"}')],
  ['two texts in one', () => new Response('{"verdict":"redact","texts":[{"index":0,"text":"a","text":"b"}]}')],
  ['a verdict that there is not', () => Response.json({ verdict: 'perhaps' })],
  ['a text that it was not shown', () => Response.json({ verdict: 'redact', texts: [{ index: 7, text: '' }] })],
  ['a redact without texts', () => Response.json({ verdict: 'redact' })],
  ['a rewrite to the same text', () => Response.json({ verdict: 'rewrite', texts: [{ index: 0, text: 'hello' }] })],
  ['too much', () => new Response('x'.repeat(2 * 1024 * 1024))],
  ['nothing for too long', () => new Promise<Response>(() => undefined)],
  [
    'headers and then nothing',
    () => new Response(new ReadableStream({ start: (outlet) => outlet.enqueue(new TextEncoder().encode('{')) })),
  ],
]

test.each(lies)('a webhook that answers with %s is broken', async (_, lie) => {
  answer = lie
  await expect(ask(subject('hello'), tools(), { timeout_ms: 1000 })).rejects.toThrow()
  expect(seen).toHaveLength(1)
})

test('it is not called at an address inside, whatever name it goes by', async () => {
  for (const inside of [
    '127.0.0.1',
    '169.254.169.254',
    '10.1.2.3',
    '::1',
    'fe80::1',
    '::ffff:169.254.169.254',
    'fd00::1',
  ]) {
    const resolve = async () => ['93.184.216.34', inside]
    await expect(ask(subject('x'), tools({ privateWebhooks: false, resolve }))).rejects.toThrow('inside')
  }
  for (const url of [
    'http://127.0.0.1/',
    'http://[::1]/',
    'http://2130706433/',
    'http://0x7f.1/',
    'http://169.254.169.254/',
  ]) {
    await expect(ask(subject('x'), tools({ privateWebhooks: false }), { url })).rejects.toThrow('inside')
  }
  expect(seen).toEqual([])
})

test('over http the call goes to the address that was checked, under the name that was asked', async () => {
  const called: [string, BunFetchRequestInit][] = []
  const watched = async (url: string, init: BunFetchRequestInit) => {
    called.push([url, init])
    return Response.json({ verdict: 'allow' })
  }
  const use = tools({ privateWebhooks: false, resolve: async () => ['93.184.216.34'], fetch: watched })
  await ask(subject('x'), use, { url: 'http://guard.example:8080/check' })
  expect(called[0]?.[0]).toBe('http://93.184.216.34:8080/check')
  expect(called[0]?.[1]).toMatchObject({ headers: { host: 'guard.example:8080' }, redirect: 'manual' })
})

test('a resolver that stalls, or a caller that leaves, ends the wait', async () => {
  const stalled = tools({ privateWebhooks: false, resolve: () => new Promise(() => undefined) })
  await expect(ask(subject('x'), stalled, { timeout_ms: 200 })).rejects.toThrow('in time')
  const leaving = new AbortController()
  answer = () => {
    leaving.abort()
    return new Promise(() => undefined)
  }
  await expect(ask(subject('x'), tools({ signal: leaving.signal }), { timeout_ms: 30_000 })).rejects.toThrow()
})

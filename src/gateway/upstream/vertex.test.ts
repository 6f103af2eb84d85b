/** Vertex AI behind the gateway: both of its languages, and what the loss of its token endpoint does to requests. */
import { afterEach, expect, test } from 'bun:test'
import { testServiceKey } from '../../providers/google/testing/service-key.ts'
import { startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { testModel, testProvider } from '../testing/worker.ts'

let running: TestGateway | null = null
afterEach(async () => {
  await running?.stop()
  running = null
})

const gemini = {
  candidates: [{ content: { role: 'model', parts: [{ text: 'from gemini' }] }, finishReason: 'STOP' }],
  usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
}
const claude = {
  ...{ id: 'm', type: 'message', role: 'assistant', model: 'claude-sonnet-4', stop_reason: 'end_turn' },
  ...{ stop_sequence: null, content: [{ type: 'text', text: 'from claude' }] },
  usage: { input_tokens: 3, output_tokens: 2 },
}
const answerOf = (url: string) => Response.json(url.includes('/anthropic/') ? claude : gemini)
const token = () => Response.json({ access_token: 'access', expires_in: 3600 })

/** A gateway whose one provider is Vertex AI; `endpoint` answers for tokens. */
async function start(endpoint: () => Response | Promise<Response>, answer = answerOf) {
  running = await startTestGateway(async ({ url }) => (url.endsWith('/token') ? await endpoint() : answer(url)))
  const baseUrl = running.worker.upstreams[0]?.baseUrl ?? ''
  const apiKey = testServiceKey(`${baseUrl}/token`, { client_email: `${crypto.randomUUID()}@x` })
  running.worker.upstreams[0] = testProvider({ id: 'v', name: 'vertex', kind: 'vertex', baseUrl, apiKey })
  return running
}

const asked = (model: string) => ({ model, messages: [{ role: 'user', content: 'hello' }] })
const callsOf = ({ seen }: TestGateway) => seen.map(({ request }) => new URL(request.url).pathname.split('/').at(-1))

test('answers chats by Gemini and by Anthropic models of one provider', async () => {
  const gateway = await start(token)
  for (const [model, text] of [
    ['gemini-2.5-flash', 'from gemini'],
    ['vertex/claude-sonnet-4@20250514', 'from claude'],
  ] as const) {
    const answer = await gateway.chat(asked(model))
    expect([answer.status, await answer.json()]).toMatchObject([200, { choices: [{ message: { content: text } }] }])
  }
  expect(callsOf(gateway)).toEqual(['token', 'gemini-2.5-flash:generateContent', 'claude-sonnet-4@20250514:rawPredict'])
})

test('passes a messages request to an Anthropic model on, with its version and without its model', async () => {
  const gateway = await start(token)
  const answer = await fetch(`${gateway.url}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': gateway.secret, 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
    body: '{"model":"claude-sonnet-4", "max_tokens": 5, "messages":[{"role":"user","content":"hello"}]}',
  })
  expect([answer.status, await answer.json()]).toMatchObject([200, { content: [{ text: 'from claude' }] }])
  expect(gateway.seen.at(-1)?.body).toBe(
    '{"max_tokens": 5, "messages":[{"role":"user","content":"hello"}],"anthropic_version":"vertex-2023-10-16"}',
  )
})

test('fails over to a fallback when no token can be had, and shows callers nothing of the key', async () => {
  const gateway = await start(() => Response.json({ error: 'invalid_grant' }, { status: 400 }))
  const alone = await gateway.chat(asked('gemini-2.5-flash'))
  expect(alone.status).toBe(502)
  expect(await alone.text()).not.toMatch(/PRIVATE|invalid_grant|my-project/)
  const [vertex] = gateway.worker.upstreams
  gateway.worker.upstreams.push(
    testProvider({ id: 's', name: 'spare', kind: 'gemini', baseUrl: vertex?.baseUrl ?? '' }),
  )
  gateway.worker.catalog.push(
    testModel({ id: 'main', providerId: 'v', upstreamModel: 'gemini-2.5-flash', fallbacks: ['spare'] }),
    testModel({ id: 'spare', providerId: 's', upstreamModel: 'gemini-2.5-flash' }),
  )
  const answer = await gateway.chat(asked('main'))
  expect([answer.status, await answer.json()]).toMatchObject([
    200,
    { choices: [{ message: { content: 'from gemini' } }] },
  ])
})

test('masks the private key in an error, and no text that a key has in common with others', async () => {
  let key = ''
  const gateway = await start(token, (url) =>
    url.includes('/anthropic/')
      ? Response.json({ type: 'error', error: { type: 'x', message: `Bad key ${key}` } }, { status: 400 })
      : Response.json({
          ...gemini,
          candidates: [{ content: { role: 'model', parts: [{ text: common }] }, finishReason: 'STOP' }],
        }),
  )
  const common = `-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC https://oauth2.googleapis.com/token`
  key = JSON.parse(gateway.worker.upstreams[0]?.apiKey ?? '').private_key
  const answer = await gateway.chat(asked('gemini-2.5-flash'))
  expect(await answer.json()).toMatchObject({ choices: [{ message: { content: common } }] })
  const error = await (await gateway.chat(asked('claude-sonnet-4'))).text()
  expect(error).toContain('Bad key')
  expect(error).not.toContain(key.split('\n')[4] ?? '')
})

test('a caller that leaves while the token endpoint hangs leaves nothing behind for the next', async () => {
  const hanging = Promise.withResolvers<Response>()
  const gateway = await start(() => hanging.promise)
  const leaving = new AbortController()
  const left = gateway.chat(asked('gemini-2.5-flash'), { signal: leaving.signal }).catch(() => 'left')
  while (gateway.seen.length === 0) await Bun.sleep(5)
  const staying = gateway.chat(asked('gemini-2.5-flash'))
  leaving.abort()
  expect(await left).toBe('left')
  while (gateway.worker.journal.outcomes().length === 0) await Bun.sleep(5)
  hanging.resolve(token())
  expect((await staying).status).toBe(200)
  expect(callsOf(gateway)).toEqual(['token', 'gemini-2.5-flash:generateContent'])
})

import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import { api, createToken } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'
import { eventsOfRequest } from '../support/recorded.ts'

setDefaultTimeout(120_000)

let answer: () => Response | Promise<Response> = () => Response.json({ verdict: 'allow' })
let asked = 0
const guard = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  idleTimeout: 0,
  fetch() {
    asked += 1
    return answer()
  },
})

let gatehouse: Gatehouse
let token: string

beforeAll(async () => {
  gatehouse = await startGatehouse({ env: { SERVICE_WEBHOOK_ADDRESSES: 'any' } })
  token = (await createToken(gatehouse)).token_value
  const config = { url: `http://127.0.0.1:${guard.port}/`, timeout_ms: 1000 }
  for (const [family, whenBroken] of [
    ['chat', 'deny'],
    ['embeddings', 'allow'],
  ] as const) {
    const targets = { families: [family] }
    const body = { name: family, kind: 'webhook', stages: ['pre_request'], config, targets, when_broken: whenBroken }
    expect((await api(gatehouse, '/v1/policies', { body })).status).toBe(201)
  }
  await eventually(
    async () => {
      await (await ask('embeddings')).text()
      expect(asked).toBeGreaterThan(0)
    },
    { withinMs: 30_000 },
  )
}, 240_000)
beforeEach(() => {
  asked = 0
})
afterAll(async () => {
  await gatehouse?.stop()
  await guard.stop(true)
})

const bodies = {
  chat: { path: '/v1/chat/completions', fields: { messages: [{ role: 'user', content: 'hello' }] } },
  embeddings: { path: '/v1/embeddings', fields: { input: 'hello' } },
}

const ask = (family: keyof typeof bodies, requestId = 'webhook'): Promise<Response> =>
  fetch(`${gatehouse.gatewayUrl}${bodies[family].path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'x-request-id': requestId },
    body: JSON.stringify({ model: 'simulator/echo', ...bodies[family].fields }),
  })

test('the webhook’s verdict becomes the verdict of the request', async () => {
  answer = () => Response.json({ verdict: 'allow' })
  expect((await ask('chat')).status).toBe(200)
  answer = () => Response.json({ verdict: 'block', reason_code: 'opa.denied', message: 'Not today' })
  const blocked = await ask('chat')
  expect([blocked.status, await blocked.json()]).toMatchObject([
    400,
    { error: { message: 'Not today' }, verdictan: { verdict: 'BLOCK', reason_code: 'opa.denied' } },
  ])
})

const lies: [string, () => Response | Promise<Response>][] = [
  ['stalls', () => new Promise<Response>(() => undefined)],
  ['fails', () => new Response('', { status: 500 })],
  ['says what there is not', () => Response.json({ verdict: 'maybe' })],
  ['sends the call elsewhere', () => Response.redirect('http://169.254.169.254/')],
]

test.each(lies)('when it %s, when_broken decides and the event says so', async (what, lie) => {
  answer = lie
  const requestId = `webhook-${what.replaceAll(' ', '-')}`
  const denied = await ask('chat', requestId)
  expect([denied.status, await denied.json()]).toMatchObject([403, { error: { code: 'policy_denied' } }])
  expect((await ask('embeddings')).status).toBe(200)
  expect(asked).toBe(2)
  const events = await eventsOfRequest(gatehouse, requestId)
  expect(events.find(({ event_type }) => event_type === 'decision')).toMatchObject({ reason_code: 'policy.broken' })
})

test('a webhook at an internal address is called only with the setting', async () => {
  await using other = await startGatehouse()
  const body = {
    policies: [
      { name: 'x', kind: 'webhook', stages: ['pre_request'], config: { url: `http://127.0.0.1:${guard.port}/` } },
    ],
    request: { model: 'm', messages: [] },
  }
  expect((await api(other, '/v1/policies/test', { body })).body).toMatchObject({
    verdict: 'deny',
    reason_code: 'policy.broken',
  })
  expect(asked).toBe(0)
})

test('a reader of policies cannot have a webhook called', async () => {
  const auditor = await createToken(gatehouse, { roles: ['auditor'] })
  const body = {
    policies: [
      {
        name: 'mine',
        kind: 'webhook',
        stages: ['pre_request'],
        config: { url: 'http://127.0.0.1:9/', timeout_ms: 10 },
      },
    ],
    request: { model: 'm', messages: [] },
  }
  const refused = await api(gatehouse, '/v1/policies/test', { body, token: auditor.token_value })
  expect([refused.status, refused.body]).toMatchObject([403, { error: { param: 'policies.0' } }])
  expect((await api(gatehouse, '/v1/policies/test', { body })).status).toBe(200)
})

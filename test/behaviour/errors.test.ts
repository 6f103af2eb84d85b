/**
 * Everything that can be refused or go wrong on the way of one chat request, as one table: what is sent or what the
 * provider does, and what must come back. One installation has a provider that takes any model; a second has none, so
 * that a model can be unknown. Long because each row of the table stands here.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { chatStream, providerError } from '../fakes/chat.ts'
import { cut, splitPlans } from '../fakes/splits.ts'
import {
  type FakeUpstream,
  jsonReply,
  type Reply,
  silentReply,
  startFakeUpstream,
  streamReply,
} from '../fakes/upstream.ts'
import { errorAnswer } from '../support/answers.ts'
import { createToken, installation, parseOrKeep, revoke } from '../support/client.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'
import { eventsOfRequest, outcomesOf } from '../support/recorded.ts'

setDefaultTimeout(120_000)

let upstream: FakeUpstream
let gatehouse: Gatehouse
let offline: Gatehouse
const tokens = { good: '', offline: '', revoked: '', provider: '', model: '', runtime: '', gateway: '' }

const shortPatience = { SERVICE_FIRST_BYTE_TIMEOUT_SECONDS: '1', SERVICE_IDLE_TIMEOUT_SECONDS: '1' }

beforeAll(async () => {
  upstream = await startFakeUpstream()
  gatehouse = await startGatehouse({ upstream, env: shortPatience })
  offline = await startGatehouse()
  const { gatewayId, teamId } = await installation(gatehouse)
  const make = async (fields: object) => (await createToken(gatehouse, fields)).token_value
  const revoked = await createToken(gatehouse)
  await revoke(gatehouse, revoked.id)
  Object.assign(tokens, {
    good: await make({}),
    offline: (await createToken(offline)).token_value,
    revoked: revoked.token_value,
    provider: await make({ bindings: { provider: 'simulator' } }),
    model: await make({ bindings: { model_filter: ['simulator/*', 'allowed-*'] } }),
    runtime: await make({ purpose: 'gateway_runtime', bindings: { gateway_id: gatewayId, team_id: teamId } }),
  })
}, 240_000)
afterAll(async () => {
  await gatehouse?.stop()
  await offline?.stop()
  await upstream?.close()
})

const mebibyte = 1024 * 1024
const plain = '{"model":"fake-model","messages":[]}'
/** Asks for usage too, so that the gateway has nothing to ask for and to take out again. */
const streamed = '{"model":"fake-model","messages":[],"stream":true,"stream_options":{"include_usage":true}}'
const atEveryFrame = splitPlans['at every frame'] ?? (() => [])

interface Sent {
  /** The value of Authorization, made when the test runs; null sends none. */
  authorization: () => string | null
  body: () => string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>
  on?: () => Gatehouse
}

interface Expected {
  status: number
  type: string
  code: string
  param?: string | null
  verdict: string
  source: 'gateway' | 'upstream'
}

const bearer = (name: keyof typeof tokens) => () => `Bearer ${tokens[name]}`
const good = bearer('good')

/** A secret whose form and checksum are right, though nobody made it. */
function inventedToken(): string {
  const body = `gth_${'0'.repeat(30)}`
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  let checksum = ''
  for (let rest = Bun.hash.crc32(body); checksum.length < 6; rest = Math.floor(rest / 62)) {
    checksum = digits.charAt(rest % 62) + checksum
  }
  return body + checksum
}

/** A body of this size whose length is not announced. */
const chunkedBody = (size: number): ReadableStream<Uint8Array> => {
  let left = size
  return new ReadableStream({
    pull(controller) {
      const length = Math.min(left, 64 * 1024)
      left -= length
      if (length > 0) controller.enqueue(new Uint8Array(length).fill(0x20))
      else controller.close()
    },
  })
}

const unauthenticated = (code: string): Expected => ({
  status: 401,
  type: 'authentication_error',
  code,
  param: null,
  verdict: 'DENY',
  source: 'gateway',
})
const invalid = (status: number, code: string, param: string | null = null): Expected => ({
  status,
  type: 'invalid_request_error',
  code,
  param,
  verdict: 'DENY',
  source: 'gateway',
})
const forbidden = (code: string): Expected => ({
  status: 403,
  type: 'access_denied',
  code,
  verdict: 'DENY',
  source: 'gateway',
})

const refusals: Readonly<Record<string, [Sent, Expected]>> = {
  'no Authorization header': [{ authorization: () => null, body: () => plain }, unauthenticated('missing_api_key')],
  'an empty bearer token': [{ authorization: () => 'Bearer ', body: () => plain }, unauthenticated('missing_api_key')],
  'another scheme': [
    { authorization: () => `Basic ${btoa('a:b')}`, body: () => plain },
    unauthenticated('missing_api_key'),
  ],
  'a bearer that is no token of ours': [
    { authorization: () => 'Bearer sk-something', body: () => plain },
    unauthenticated('invalid_api_token'),
  ],
  'a wrong checksum': [
    { authorization: () => `Bearer ${inventedToken().slice(0, -1)}!`, body: () => plain },
    unauthenticated('invalid_api_token'),
  ],
  'an invented token with a right checksum': [
    { authorization: () => `Bearer ${inventedToken()}`, body: () => plain },
    unauthenticated('invalid_api_token'),
  ],
  'a token as long as a header may be': [
    { authorization: () => `Bearer ${'g'.repeat(12_000)}`, body: () => plain },
    unauthenticated('invalid_api_token'),
  ],
  'a revoked token': [{ authorization: bearer('revoked'), body: () => plain }, unauthenticated('invalid_api_token')],
  'a runtime token': [{ authorization: bearer('runtime'), body: () => plain }, forbidden('tokens.purpose_not_allowed')],
  'a token bound to another provider': [
    { authorization: bearer('provider'), body: () => plain },
    forbidden('tokens.provider_not_allowed'),
  ],
  'a token bound to other models': [
    { authorization: bearer('model'), body: () => plain },
    forbidden('tokens.model_not_allowed'),
  ],
  'a body of 11 MiB': [
    { authorization: good, body: () => new Uint8Array(11 * mebibyte).fill(0x20) },
    invalid(413, 'request_too_large'),
  ],
  'a chunked body of 11 MiB': [
    { authorization: good, body: () => chunkedBody(11 * mebibyte) },
    invalid(413, 'request_too_large'),
  ],
  'no body': [{ authorization: good, body: () => '' }, invalid(400, 'invalid_json')],
  'a truncated body': [
    { authorization: good, body: () => '{"model":"fake-model","messages":[' },
    invalid(400, 'invalid_json'),
  ],
  'a body that is not UTF-8': [
    {
      authorization: good,
      body: () => new Uint8Array(Buffer.from('{"model":"fake-model","messages":["\xff\xfe"]}', 'latin1')),
    },
    invalid(400, 'invalid_json'),
  ],
  'a body that is an array': [{ authorization: good, body: () => '[]' }, invalid(400, 'invalid_json')],
  'a body nested too deep': [
    {
      authorization: good,
      body: () => `{"model":"fake-model","messages":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
    },
    invalid(400, 'json_too_deep'),
  ],
  'a body without a model': [
    { authorization: good, body: () => '{"messages":[]}' },
    invalid(422, 'invalid_parameter', 'model'),
  ],
  'a model that is no text': [
    { authorization: good, body: () => '{"model":7,"messages":[]}' },
    invalid(422, 'invalid_parameter', 'model'),
  ],
  'a model nobody knows': [
    { authorization: bearer('offline'), body: () => plain, on: () => offline },
    invalid(404, 'model_not_found', 'model'),
  ],
}

/** Sends a request and gives all that a caller can tell of the refusal, with the outcome that was recorded. */
async function refusalOf({ authorization, body, on = () => gatehouse }: Sent) {
  const requestId = `refused-${crypto.randomUUID()}`
  const value = authorization()
  const answer = await fetch(`${on().gatewayUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-request-id': requestId,
      ...(value !== null && { authorization: value }),
    },
    body: body(),
  })
  const text = await answer.text()
  const parsed = errorAnswer.safeParse(parseOrKeep(text)).data
  const outcomes = outcomesOf(await eventsOfRequest(on(), requestId), requestId)
  return {
    requestId,
    text,
    told: {
      status: answer.status,
      type: parsed?.error.type,
      code: parsed?.error.code,
      param: parsed?.error.param,
      verdict: answer.headers.get('x-service-verdict'),
      source: answer.headers.get('x-service-error-source'),
      retry: answer.headers.get('x-should-retry'),
      header: answer.headers.get('x-request-id'),
      body: parsed?.request_id,
    },
    outcomes: outcomes.map(({ verdict, reason_code }) => ({ verdict, reason_code })),
  }
}

for (const [what, [sent, expected]] of Object.entries(refusals)) {
  test(`${what} is refused with ${expected.status} ${expected.code} before the provider call, and recorded`, async () => {
    const callsBefore = upstream.calls.length
    const { told, outcomes, requestId } = await refusalOf(sent)
    const { param = told.param, ...rest } = expected
    expect(told).toEqual({ ...rest, param, retry: 'false', header: requestId, body: requestId })
    expect(outcomes).toEqual([{ verdict: 'deny', reason_code: expected.code }])
    expect(upstream.calls.length).toBe(callsBefore)
  })
}

const failed = (code: string): Expected => ({
  status: 502,
  type: 'server_error',
  code,
  verdict: 'ERROR',
  source: 'gateway',
})
const unreachable = failed('provider_primary_path_error')
const unusable = failed('upstream_provider_error')

const brokenAnswers: Readonly<Record<string, [Reply, Expected]>> = {
  'never answers': [silentReply, unreachable],
  'resets before the headers': [{ stop: { after: 'nothing', by: 'reset' } }, unreachable],
  'closes before the headers': [{ stop: { after: 'nothing', by: 'close' } }, unreachable],
  'answers with something that is not HTTP': [{ raw: Buffer.from('\x16\x03\x01 what?\r\n\r\n') }, unreachable],
  'answers 200 with garbage for JSON': [jsonReply(Buffer.from('{"choices": [')), unusable],
  'answers 200 with an HTML page': [
    {
      ...jsonReply(Buffer.from('<html>Sign in to the guest network</html>')),
      headers: { 'content-type': 'text/html' },
    },
    unusable,
  ],
}

for (const [what, [reply, expected]] of Object.entries(brokenAnswers)) {
  for (const body of [plain, streamed]) {
    const kind = body === streamed ? 'a stream' : 'a whole answer'
    test(`a provider that ${what} on a request for ${kind} gives ${expected.status} ${expected.code}`, async () => {
      // A repeated failure may be tried again or open a circuit: the reply holds for every try of this model.
      const model = `broken-${crypto.randomUUID()}`
      upstream.when(model, reply)
      const sent = { authorization: good, body: () => body.replace('fake-model', model) }
      const { told, outcomes, text } = await refusalOf(sent)
      expect(told).toMatchObject({ ...expected, retry: null })
      expect(text).not.toContain('data:')
      expect(outcomes).toMatchObject([{ verdict: 'error' }])
    })
  }
}

test('a provider that refuses connections gives 502 provider_primary_path_error and is used again after it returns', async () => {
  const { told } = await upstream.refuseDuring(() => refusalOf({ authorization: good, body: () => plain }))
  expect(told).toMatchObject({ ...unreachable, retry: null })
  const answer = await fetch(`${gatehouse.gatewayUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: good(), 'content-type': 'application/json' },
    body: plain,
  })
  await answer.text()
  expect(answer.status).toBe(200)
})

for (const status of [400, 401, 403, 404, 408, 409, 422, 429, 500, 503, 529]) {
  test(`a provider's ${status} is passed on with its body and marked as the provider's`, async () => {
    const model = `status-${status}`
    const body = providerError(`provider-${status}`)
    const headers = { 'content-type': 'application/json', 'x-should-retry': 'maybe', 'retry-after': '1' }
    upstream.when(model, { ...jsonReply(body), status, headers })
    const sent = { authorization: good, body: () => plain.replace('fake-model', model) }
    const { told, text, outcomes } = await refusalOf(sent)
    const notRetryable = status < 500 && ![408, 409, 429].includes(status)
    expect(told).toMatchObject({ status, verdict: 'ERROR', source: 'upstream', retry: notRetryable ? 'false' : null })
    expect(text).toBe(body.toString())
    expect(outcomes).toEqual([{ verdict: 'error', reason_code: 'provider.error' }])
  })
}

test("a provider's Retry-After is passed on", async () => {
  const headers = { 'content-type': 'application/json', 'retry-after': '7' }
  upstream.when('later', { ...jsonReply(providerError('slow_down')), status: 429, headers })
  const answer = await fetch(`${gatehouse.gatewayUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: good(), 'content-type': 'application/json' },
    body: plain.replace('fake-model', 'later'),
  })
  expect(answer.headers.get('retry-after')).toBe('7')
})

interface BrokenStream {
  text: string
  outcome: { verdict: string; reason_code: string } | undefined
  outcomes: number
}

/**
 * Reads an answer that breaks to its end, whichever way it ends, and the outcome it left. A stream does not break before
 * the caller has what came first: a gateway that nothing has reached yet asks again, and would be given an answer.
 */
async function readBroken(reply: Reply, body = streamed): Promise<BrokenStream> {
  const requestId = `broken-${crypto.randomUUID()}`
  const { promise: until, resolve: arrived } = Promise.withResolvers<void>()
  const { body: sent = new Uint8Array(), split = () => [], stop } = reply
  const before = typeof stop?.after === 'number' ? cut(sent, split(sent)).slice(0, stop.after) : []
  const first = Buffer.concat(before).toString()
  upstream.next(stop && body === streamed ? { ...reply, stop: { ...stop, until } } : reply)
  const answer = await fetch(`${gatehouse.gatewayUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: good(), 'content-type': 'application/json', 'x-request-id': requestId },
    body,
  })
  let text = ''
  try {
    const decoder = new TextDecoder()
    for await (const bytes of answer.body ?? []) {
      text += decoder.decode(bytes, { stream: true })
      if (text.startsWith(first)) arrived()
    }
  } catch {
    text += '(broken off)'
  }
  const outcomes = outcomesOf(await eventsOfRequest(gatehouse, requestId), requestId)
  return { text, outcome: outcomes[0], outcomes: outcomes.length }
}

/** The error object of the stream's error frame, or null where there is none. */
function errorFrame(text: string): unknown {
  const frame = text
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => parseOrKeep(line.slice('data: '.length)))
    .find((data) => errorAnswer.safeParse(data).success)
  return frame === undefined ? null : errorAnswer.parse(frame).error
}

for (const by of ['reset', 'close', 'stall'] as const) {
  test(`a stream that the provider ends by ${by} ends with an error frame and is recorded as an error`, async () => {
    const { text, outcome, outcomes } = await readBroken({
      ...streamReply(),
      split: atEveryFrame,
      stop: { after: 3, by },
    })
    expect(text).toStartWith(chatStream().toString().slice(0, 40))
    expect(text).toContain('Grüße')
    const code = by === 'stall' ? 'provider_primary_path_error' : 'upstream_provider_error'
    expect(errorFrame(text)).toMatchObject({ type: 'server_error', code })
    expect(outcome?.verdict).toBe('error')
    expect(outcomes).toBe(1)
  })

  test(`a whole answer that the provider ends by ${by} never looks complete`, async () => {
    const reply: Reply = { ...jsonReply(), split: (body) => [body.length - 20], stop: { after: 1, by } }
    const { text, outcome, outcomes } = await readBroken(reply, plain)
    const admitted = errorAnswer.safeParse(parseOrKeep(text)).success || text.endsWith('(broken off)')
    expect([text, admitted]).toEqual([text, true])
    expect(outcome?.verdict).toBe('error')
    expect(outcomes).toBe(1)
  })
}

test('a complete stream without [DONE] keeps every byte, gets [DONE] and leaves one outcome', async () => {
  const body = chatStream({ done: false })
  for (const framing of ['chunked', 'length'] as const) {
    const { text, outcome, outcomes } = await readBroken({ ...streamReply(body), framing })
    expect(text).toBe(`${body}data: [DONE]\n\n`)
    expect([outcome?.verdict, outcome?.reason_code, outcomes]).toEqual(['allow', 'ok', 1])
  }
})

test('an unfinished stream without [DONE] is an error', async () => {
  const body = chatStream({ done: false })
  const whole = streamReply(body)
  for (const reply of [
    { ...whole, framing: 'close' as const },
    streamReply(chatStream({ finished: false })),
    { ...whole, stop: { after: 1, by: 'close' as const } },
    { ...whole, stop: { after: 1, by: 'reset' as const } },
  ]) {
    const { text, outcome, outcomes } = await readBroken(reply)
    expect([reply, errorFrame(text)]).toMatchObject([reply, { code: 'upstream_provider_error' }])
    if (reply.framing === 'close') expect(text).toStartWith(body.toString())
    expect([outcome?.verdict, outcomes]).toEqual(['error', 1])
  }
})

test('an unreadable frame within a stream is passed unchanged and leaves one outcome', async () => {
  const [head = '', ...rest] = chatStream().toString().split('\n\n')
  const garbage = [
    'data: {"choices": [',
    'event: \u0000\u0001',
    'data: "text"',
    ':',
    'data',
    'nonsense without a colon',
  ]
  const body = Buffer.from([head, ...garbage, ...rest].join('\n\n'))
  const { text, outcomes } = await readBroken(streamReply(body))
  expect(text).toBe(body.toString())
  expect(outcomes).toBe(1)
})

test('missing or wrong usage breaks neither the answer nor the record', async () => {
  const lies = [
    null,
    { prompt_tokens: -5, completion_tokens: 1e30, total_tokens: Number.MAX_SAFE_INTEGER },
    { prompt_tokens: 1.5, completion_tokens: 0, total_tokens: 0 },
  ]
  for (const usage of lies) {
    const { outcome, outcomes } = await readBroken(streamReply(chatStream({ usage })))
    expect([usage, outcomes, outcome?.verdict]).toEqual([usage, 1, 'allow'])
  }
})

test('an undocumented path is 404 and never forwarded', async () => {
  const callsBefore = upstream.calls.length
  for (const path of [
    '/v1/vector_stores',
    '/v1/chat/completions/x',
    '/v1/../v1/vector_stores',
    '/',
    '/v1/gateway-runtime/heartbeat',
  ]) {
    const answer = await fetch(`${gatehouse.gatewayUrl}${path}`, { method: 'POST', headers: { authorization: good() } })
    const { error } = errorAnswer.parse(await answer.json())
    expect([path, answer.status, error.code]).toEqual([path, 404, 'not_found'])
  }
  expect(upstream.calls.length).toBe(callsBefore)
})

test('a known path with another method is 405', async () => {
  const answer = await fetch(`${gatehouse.gatewayUrl}/v1/chat/completions`, { headers: { authorization: good() } })
  expect(answer.status).toBe(405)
  expect(errorAnswer.parse(await answer.json()).error.code).toBe('method_not_allowed')
})

test("the caller's request id is echoed when it is valid, and replaced otherwise", async () => {
  const ask = async (requestId: string) => {
    const answer = await fetch(`${gatehouse.gatewayUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: good(), 'x-request-id': requestId },
      body: plain,
    })
    await answer.text()
    return answer.headers.get('x-request-id')
  }
  expect(await ask('Az09._:-')).toBe('Az09._:-')
  for (const wrong of ['has a space', 'x'.repeat(129), '<script>']) {
    const given = await ask(wrong)
    expect(given).not.toBe(wrong)
    expect(given).toMatch(/^[A-Za-z0-9._:-]{1,128}$/)
  }
})

test('an allowed answer carries the verdict allow', async () => {
  const answer = await fetch(`${gatehouse.gatewayUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: good() },
    body: plain,
  })
  await answer.text()
  expect(answer.headers.get('x-service-verdict')).toBe('ALLOW')
  expect(answer.headers.get('x-service-error-source')).toBeNull()
})

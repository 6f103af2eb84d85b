/**
 * Every family against everything that can become of a request, as one table: what the caller saw, what the provider saw
 * and what was recorded. `SHOW_MATRIX=1 bun test test/behaviour/families.test.ts` prints it.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { providerError } from '../fakes/chat.ts'
import { type FamilyFixture, families } from '../fakes/families.ts'
import { splitPlans } from '../fakes/splits.ts'
import { type FakeUpstream, jsonReply, type Reply, startFakeUpstream } from '../fakes/upstream.ts'
import { api, createToken, parseOrKeep } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'
import { eventsOfRequest, outcomesOf } from '../support/recorded.ts'

setDefaultTimeout(120_000)

let upstream: FakeUpstream
let gatehouse: Gatehouse
/** Governed by no policy, by one that looks at answers, by one that changes requests. */
const tokens = { plain: '', governed: '', redacted: '' }
const seen: Record<string, Record<string, string>> = {}

beforeAll(async () => {
  upstream = await startFakeUpstream()
  gatehouse = await startGatehouse({
    upstream,
    env: { ANTHROPIC_API_KEY: 'sk-ant-fake', ANTHROPIC_BASE_URL: upstream.baseUrl },
  })
  tokens.plain = (await createToken(gatehouse)).token_value
  const governed = await createToken(gatehouse)
  tokens.governed = governed.token_value
  const redacted = await createToken(gatehouse)
  tokens.redacted = redacted.token_value
  const terms = { name: 'terms', kind: 'term-filter' }
  const answers = { ...terms, stages: ['pre_response'], config: { terms: ['never said'], action: 'block' } }
  const requests = { ...terms, stages: ['pre_request'], config: { terms: ['Grüße'], action: 'redact' } }
  for (const body of [
    { ...answers, targets: { tokens: [governed.id] } },
    { ...requests, name: 'requests', targets: { tokens: [redacted.id] } },
  ]) {
    const made = await api(gatehouse, '/v1/policies', { body })
    expect([made.status, made.body]).toEqual([201, made.body])
  }
  const [fixture] = families
  if (fixture === undefined) throw new Error('There are no families')
  await eventually(async () => {
    const { response } = await ask({ fixture, reply: fixture.whole, token: tokens.redacted })
    await response.arrayBuffer()
    if (response.headers.get('x-service-verdict') !== 'REDACT') throw new Error('The gateway has not the policies yet')
  })
}, 240_000)
beforeEach(() => upstream?.forget())
afterAll(async () => {
  if (process.env.SHOW_MATRIX) console.table(seen)
  await gatehouse?.stop()
  await upstream?.close()
})

interface Asked {
  fixture: FamilyFixture
  reply: Reply
  stream?: boolean
  token?: string
  signal?: AbortSignal
  requestId?: string
}

/** Asks one family through the gateway, with a provider that answers just this request so. */
async function ask({ fixture, reply, stream = false, token = tokens.plain, signal, ...asked }: Asked) {
  const { requestId = `matrix-${crypto.randomUUID()}` } = asked
  const model = `model-${crypto.randomUUID()}`
  const { body, contentType } = fixture.request(model, stream)
  upstream.when(model, reply)
  const response = await fetch(gatehouse.gatewayUrl + fixture.path, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': contentType, 'x-request-id': requestId },
    body,
    ...(signal && { signal }),
  })
  return { response, requestId, model, sent: Buffer.from(body) }
}

/** All that came, and whether it came to an end. */
async function read(response: Response): Promise<{ bytes: Buffer; ended: boolean }> {
  const pieces: Uint8Array[] = []
  try {
    for await (const piece of response.body ?? []) pieces.push(piece)
    return { bytes: Buffer.concat(pieces), ended: true }
  } catch {
    return { bytes: Buffer.concat(pieces), ended: false }
  }
}

async function outcomeOf(requestId: string): Promise<string> {
  const outcomes = outcomesOf(await eventsOfRequest(gatehouse, requestId), requestId)
  return outcomes.map(({ verdict, reason_code }) => `${verdict} ${reason_code}`).join(' and ')
}

/** Notes what was seen in the table and holds it against what must be. */
function hold({ family }: FamilyFixture, column: string, found: string, expected: string): void {
  seen[family] = { ...seen[family], [column]: found }
  expect(`${family}, ${column}: ${found}`).toBe(`${family}, ${column}: ${expected}`)
}

const errorForm = z.looseObject({
  error: z.looseObject({ code: z.string(), message: z.string() }),
  request_id: z.string(),
})

/** The code of an error answer of the gateway's own, in the family's form. */
function errorOf(fixture: FamilyFixture, text: string): string {
  const body = parseOrKeep(text)
  const { error, request_id: requestId, ...rest } = errorForm.parse(body)
  expect([requestId.length > 0, rest]).toEqual([true, fixture.errors === 'messages' ? { type: 'error' } : {}])
  return error.code
}

const atEveryFrame = splitPlans['at every frame'] ?? (() => [])
const exactly = (bytes: Buffer, { body }: Reply) => (bytes.equals(Buffer.from(body ?? '')) ? 'exact' : 'changed')
const streaming = families.flatMap((fixture) => (fixture.stream === null ? [] : [{ fixture, reply: fixture.stream }]))

for (const fixture of families) {
  describe(fixture.family, () => {
    test('a whole answer passes byte for byte both ways and is recorded', async () => {
      const { response, requestId, sent } = await ask({ fixture, reply: fixture.whole })
      const { bytes } = await read(response)
      const request = upstream.calls.at(-1)?.body.equals(sent) ? 'exact' : 'changed'
      const found = `${response.status}, request ${request}, answer ${exactly(bytes, fixture.whole)}`
      const type = response.headers.get('content-type')
      expect(type).toBe(fixture.whole.headers?.['content-type'] ?? '')
      hold(fixture, 'whole', `${found}; ${await outcomeOf(requestId)}`, '200, request exact, answer exact; allow ok')
    })

    test('an error before the answer has the form of the family and is never a stream', async () => {
      const code = fixture.errors === 'messages' ? 'upstream_error' : 'provider_primary_path_error'
      for (const stream of fixture.stream === null ? [false] : [false, true]) {
        const reply: Reply = { stop: { after: 'nothing', by: 'reset' } }
        const { response, requestId } = await ask({ fixture, reply, stream })
        expect(response.headers.get('content-type')).toStartWith('application/json')
        const found = `${response.status} ${errorOf(fixture, await response.text())}; ${await outcomeOf(requestId)}`
        hold(fixture, 'error before', found, `502 ${code}; error provider.unreachable`)
      }
    })

    test('a provider refusal passes with its status and a body that the clients read', async () => {
      const body = providerError('no_such_voice')
      const reply = {
        ...jsonReply(body),
        status: 422,
        headers: { 'content-type': 'application/json', 'x-should-retry': 'true' },
      }
      const { response, requestId } = await ask({ fixture, reply })
      expect(response.headers.get('x-service-error-source')).toBe('upstream')
      expect(response.headers.get('x-should-retry')).toBe('false')
      const text = await response.text()
      const form = text === body.toString() ? 'exact' : `rewritten ${errorOf(fixture, text)}`
      const found = `${response.status} ${form}; ${await outcomeOf(requestId)}`
      const expected = fixture.errors === 'messages' ? 'rewritten no_such_voice' : 'exact'
      hold(fixture, 'refused by provider', found, `422 ${expected}; error provider.error`)
    })

    test('a whole answer that breaks never looks complete', async () => {
      // More than one piece, so that of an answer that is passed on as it comes some has gone out.
      const split = ({ length }: Uint8Array) => [length - 30, length - 20, length - 10]
      const reply: Reply = { ...fixture.whole, split, pauseBetweenPiecesMs: 20, stop: { after: 3, by: 'reset' } }
      const { response, requestId } = await ask({ fixture, reply })
      const { bytes, ended } = await read(response)
      const found = ended ? `${response.status} ${errorOf(fixture, bytes.toString())}` : 'broken off'
      const expected = fixture.family === 'speech' ? 'broken off' : '502 upstream_provider_error'
      hold(
        fixture,
        'error during',
        `${found}; ${await outcomeOf(requestId)}`,
        `${expected}; error provider.interrupted`,
      )
    })

    test('a client disconnect aborts the call to the provider and is recorded', async () => {
      const leaving = new AbortController()
      const stall = { ...fixture.whole, split: () => [5], stop: { after: 1, by: 'stall' } } as const
      const requestId = `matrix-${crypto.randomUUID()}`
      const asked = ask({ fixture, reply: stall, signal: leaving.signal, requestId }).catch(() => null)
      await eventually(() => expect(upstream.running()).toBe(1))
      const call = upstream.calls.at(-1)
      await Bun.sleep(30)
      leaving.abort()
      await asked
      const left = 'cancelled after headers'
      await eventually(() => expect(call?.state).toBe(left))
      hold(fixture, 'caller leaves', `${call?.state}; ${await outcomeOf(requestId)}`, `${left}; error client.left`)
    })

    test('the provider receives the request without what a policy redacts', async () => {
      const { response, sent, requestId } = await ask({ fixture, reply: fixture.whole, token: tokens.redacted })
      await read(response)
      const received = upstream.calls.at(-1)?.body.toString('latin1') ?? ''
      const [before = '', after = ''] = sent.toString('latin1').split(Buffer.from('Grüße').toString('latin1'))
      const kept = received.startsWith(before) && received.endsWith(after)
      const replaced = received.slice(before.length, received.length - after.length)
      const found = `${kept ? 'rest exact' : 'rest changed'}; ${await outcomeOf(requestId)}`
      hold(fixture, 'redacted', found, 'rest exact; redact policy.term_filter')
      expect(response.headers.get('x-service-verdict')).toBe('REDACT')
      expect(replaced).toMatch(/^\[[A-Z_]+\]$/)
    })

    test('a chain with a stage that the family lacks is refused before the provider call', async () => {
      const { response, requestId } = await ask({ fixture, reply: fixture.whole, token: tokens.governed })
      const text = (await read(response)).bytes.toString('latin1')
      const refused = `400 policy.incompatible_active_chain; deny policy.incompatible_active_chain`
      const code = response.status === 200 ? '' : ` ${errorOf(fixture, text)}`
      const found = `${response.status}${code}; ${await outcomeOf(requestId)}`
      hold(fixture, 'answer policy', found, fixture.outputStages ? '200; allow ok' : refused)
      expect(upstream.calls.length).toBe(fixture.outputStages ? 1 : 0)
      if (!fixture.outputStages) expect(response.headers.get('x-should-retry')).toBe('false')
    })
  })
}

for (const { fixture, reply } of streaming) {
  describe(`${fixture.family}, streamed`, () => {
    test('a stream passes byte for byte at every split', async () => {
      for (const [name, split] of Object.entries(splitPlans)) {
        const { response, requestId, sent } = await ask({ fixture, reply: { ...reply, split }, stream: true })
        const { bytes } = await read(response)
        expect([name, bytes.toString()]).toEqual([name, Buffer.from(reply.body ?? '').toString()])
        const request = upstream.calls.at(-1)?.body.equals(sent) ? 'exact' : 'changed'
        const found = `${response.status}, request ${request}, answer ${exactly(bytes, reply)}`
        hold(fixture, 'stream', `${found}; ${await outcomeOf(requestId)}`, '200, request exact, answer exact; allow ok')
      }
    })

    test('a stream that breaks ends with an error that its clients read', async () => {
      const { promise: until, resolve: begun } = Promise.withResolvers<void>()
      const broken: Reply = { ...reply, split: atEveryFrame, stop: { after: 1, by: 'reset', until } }
      const { response, requestId } = await ask({ fixture, reply: broken, stream: true })
      begun()
      const { bytes, ended } = await read(response)
      const frame =
        bytes
          .toString()
          .split('\n\n')
          .findLast((text) => text.includes('"error"')) ?? ''
      const named = frame.startsWith('event: error') ? 'named frame' : 'frame'
      const told = /"code":"([^"]+)"/.exec(frame)?.[1]
      const found = `${ended ? named : 'broken off'} ${told}; ${await outcomeOf(requestId)}`
      const expected = ['responses', 'messages'].includes(fixture.family) ? 'named frame' : 'frame'
      hold(fixture, 'stream breaks', found, `${expected} upstream_provider_error; error provider.interrupted`)
    })

    test('a client disconnect within a stream aborts the call to the provider and is recorded', async () => {
      const stalled: Reply = { ...reply, split: atEveryFrame, stop: { after: 1, by: 'stall' } }
      const leaving = new AbortController()
      const { response, requestId } = await ask({ fixture, reply: stalled, stream: true, signal: leaving.signal })
      await response.body?.getReader().read()
      leaving.abort()
      await eventually(() => expect(upstream.calls.at(-1)?.state).toBe('cancelled after headers'))
      hold(fixture, 'leaves in stream', await outcomeOf(requestId), 'error client.left')
    })
  })
}

/** Which requests are answered from the cache, which never are, and what an answer from it costs. */
import { afterEach, describe, expect, spyOn, test } from 'bun:test'
import { eventually } from '../../../test/support/eventually.ts'
import { compilePolicySet } from '../../policies/chain.ts'
import type { StoredPolicy } from '../../policies/stored-policy.ts'
import { compilePrice } from '../../providers/prices/price-record.ts'
import { InMemoryLimits } from '../../usage/testing/in-memory-limits.ts'
import { completion, question, startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { eventStream, policy, streamedText, streamOf } from '../testing/policies.ts'
import { testModel, testProvider } from '../testing/worker.ts'
import { AnswerCache } from './answer-cache.ts'

type Upstream = (request: Request, body: string) => Response | Promise<Response>

const cached = (config: object = {}, more: Partial<StoredPolicy> = {}) =>
  policy({ id: 'cache', kind: 'answer-cache', config, ...more })

let running: TestGateway
afterEach(() => running.stop())

async function start(
  policies: StoredPolicy[] = [cached()],
  upstream: Upstream = () => Response.json(completion),
  settings: Parameters<typeof startTestGateway>[1] = {},
) {
  running = await startTestGateway(upstream, { path_retries: 0, ...settings })
  running.worker.policies = compilePolicySet(policies)
}

/** Whether the answer came from the cache, by its header; reads the answer to its end. */
async function resultOf(answer: Response | Promise<Response>): Promise<string | null> {
  const { headers, body } = await answer
  await new Response(body).text()
  return headers.get('x-service-cache')
}
const ask = (body: object = question, init: Parameters<TestGateway['chat']>[1] = {}) => running.chat(body, init)
const lastOutcome = () => running.worker.journal.outcomes().at(-1)
const kept = { model: 'm', contentType: 'application/json', keptAt: 0, expiresAt: Number.MAX_VALUE, stateVersion: 7 }
const streamed = { ...question, stream: true }
const answeredStream: Upstream = (_, body) =>
  JSON.parse(body).stream ? new Response(streamOf('Hel', 'lo'), eventStream) : Response.json(completion)

describe('a repeated request', () => {
  test('is answered with the same bytes, without a call, and says so', async () => {
    await start()
    const first = await ask()
    const second = await ask()
    expect([first, second].map(({ headers }) => headers.get('x-service-cache'))).toEqual(['miss', 'hit'])
    expect(await second.text()).toBe(await first.text())
    expect(running.seen.length).toBe(1)
    expect(lastOutcome()).toMatchObject({
      verdict: 'allow',
      reason_code: 'ok',
      details: { cache: 'hit', attempts: 0, provider: 'upstream', dispatched: true },
    })
    expect(running.worker.journal.attempts().length).toBe(1)
  })

  test('is answered as a stream where a stream was asked for; a whole answer is another one', async () => {
    await start([cached()], answeredStream)
    expect(await resultOf(ask(streamed))).toBe('miss')
    expect(await resultOf(ask())).toBe('miss')
    const again = await ask(streamed)
    expect(again.headers.get('content-type')).toContain('text/event-stream')
    const text = await again.text()
    expect([again.headers.get('x-service-cache'), streamedText(text)]).toEqual(['hit', 'Hello'])
    expect(text).toEndWith('data: [DONE]\n\n')
    expect(running.seen.length).toBe(2)
  })

  test('is the same where only its labels and the order of its outermost members differ', async () => {
    await start()
    await resultOf(ask({ ...question, user: 'ann', metadata: { a: 'b' } }))
    const { model, messages } = question
    expect(await resultOf(ask({ messages, user: 'bob', model, prompt_cache_key: 'x' }))).toBe('hit')
    for (const other of [{ temperature: 1 }, { max_tokens: 5 }, { seed: 1 }, { messages: [] }]) {
      expect(await resultOf(ask({ ...question, ...other }))).toBe('miss')
    }
  })

  test('keeps every digit of its numbers apart', async () => {
    await start()
    const withSeed = (seed: string) => JSON.stringify(question).replace('{', `{"seed":${seed},`)
    await resultOf(running.chat(withSeed('9007199254740993')))
    expect(await resultOf(running.chat(withSeed('9007199254740992')))).toBe('miss')
  })

  test('goes to the provider without a policy, in monitor mode, for another model and where the condition fails', async () => {
    for (const policies of [
      [],
      [cached({}, { mode: 'monitor' })],
      [cached({}, { enabled: false })],
      [cached({}, { targets: { models: ['other'] } })],
      [cached({}, { when: 'request.stream' })],
      [cached({}, { when: 'request.headers["x-absent"] == "1"' })],
    ]) {
      await start(policies)
      expect([await resultOf(ask()), await resultOf(ask())]).toEqual([null, null])
      expect(running.seen.length).toBe(2)
      await running.stop()
    }
    await start()
  })

  test('two at once are both answered, and the next one comes from the cache', async () => {
    await start([cached()], answeredStream)
    const both = await Promise.all([resultOf(ask(streamed)), resultOf(ask(streamed))])
    expect([both, await resultOf(ask(streamed))]).toEqual([['miss', 'miss'], 'hit'])
  })

  test('is forgotten after its time', async () => {
    await start([cached({ seconds: 1 })])
    expect([await resultOf(ask()), await resultOf(ask())]).toEqual(['miss', 'hit'])
    await Bun.sleep(1050)
    expect(await resultOf(ask())).toBe('miss')
  })

  test('is answered while its provider does not answer', async () => {
    let status = 200
    await start([cached()], () => Response.json(completion, { status }), { circuit_failures: 1 })
    await resultOf(ask())
    status = 500
    expect((await ask({ ...question, seed: 1 })).status).toBe(500)
    expect(await resultOf(ask())).toBe('hit')
    expect((await ask({ ...question, seed: 2 })).status).toBe(500)
  })
})

describe('what is not kept', () => {
  test('an error', async () => {
    let status = 500
    await start([cached()], () => Response.json(status === 200 ? completion : { error: { message: 'no' } }, { status }))
    for (const failed of [500, 429, 400]) {
      status = failed
      expect((await ask()).status).toBe(failed)
    }
    status = 200
    expect([await resultOf(ask()), await resultOf(ask())]).toEqual(['miss', 'hit'])
  })

  test('an error with a success status', async () => {
    await start([cached()], () => Response.json({ error: { message: 'no' } }))
    await resultOf(ask())
    await resultOf(ask())
    expect(running.seen.length).toBe(2)
  })

  test('a stream that broke off, and one whose caller left', async () => {
    let cut = true
    let open = false
    await start([cached()], () => {
      const whole = streamOf('Hel', 'lo')
      const half = whole.slice(0, whole.indexOf('data: [DONE]') - 60)
      if (open) return new Response(new ReadableStream({ start: (body) => body.enqueue(half) }), eventStream)
      return new Response(cut ? half : whole, eventStream)
    })
    await resultOf(ask(streamed))
    cut = false
    expect([await resultOf(ask(streamed)), await resultOf(ask(streamed))]).toEqual(['miss', 'hit'])
    open = true
    const left = await ask({ ...streamed, seed: 1 })
    await left.body?.cancel()
    await eventually(() => running.worker.journal.outcomes().some(({ reason_code }) => reason_code === 'client.left'))
    open = false
    expect(await resultOf(ask({ ...streamed, seed: 1 }))).toBe('miss')
  })

  test('an answer that a policy stopped', async () => {
    const stop = policy({
      id: 'terms',
      kind: 'term-filter',
      config: { terms: ['Hello'], action: 'block' },
      stages: ['pre_response'],
    })
    await start([cached(), stop])
    expect((await ask()).status).toBe(400)
    expect((await ask()).status).toBe(400)
    expect(running.seen.length).toBe(2)
  })

  test('an answer that is longer than what is kept', async () => {
    const content = 'x'.repeat(5 * 1024 * 1024)
    await start([cached()], () => Response.json({ ...completion, choices: [{ index: 0, message: { content } }] }))
    await resultOf(ask())
    expect(await resultOf(ask())).toBe('miss')
  })

  test('what does more at its provider than getting an answer', async () => {
    await start()
    for (const more of [{ store: true }, { container: 'c' }, { tools: [{ type: 'mcp', server_url: 'https://x.y' }] }]) {
      expect([await resultOf(ask({ ...question, ...more })), await resultOf(ask({ ...question, ...more }))]).toEqual([
        null,
        null,
      ])
    }
  })

  test('a response that its provider stores, and one that continues another', async () => {
    const response = { id: 'resp_1', object: 'response', status: 'completed', output: [], model: 'gpt-test' }
    await start([cached()], () => Response.json(response))
    const respond = (more: object) =>
      fetch(`${running.url}/v1/responses`, {
        method: 'POST',
        headers: { authorization: `Bearer ${running.secret}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'gpt-test', input: 'Hi', ...more }),
      })
    expect([await resultOf(respond({})), await resultOf(respond({}))]).toEqual([null, null])
    expect([await resultOf(respond({ store: false })), await resultOf(respond({ store: false }))]).toEqual([
      'miss',
      'hit',
    ])
  })
})

describe('the caller', () => {
  const ownTeam = { teamId: 'one', eventTeamId: 'one' }

  test('shares answers with its team, and not with another', async () => {
    await start()
    const [one, same, other] = [ownTeam, ownTeam, { teamId: 'two', eventTeamId: 'two' }].map((members) =>
      running.worker.addToken(members),
    )
    expect(await resultOf(ask(question, { secret: one ?? '' }))).toBe('miss')
    expect(await resultOf(ask(question, { secret: other ?? '' }))).toBe('miss')
    expect(await resultOf(ask(question, { secret: same ?? '' }))).toBe('hit')
  })

  test('shares them with the organization, or with nobody, where the policy says so', async () => {
    for (const [scope, expected] of [
      ['organization', 'hit'],
      ['token', 'miss'],
    ]) {
      await start([cached({ scope })])
      await resultOf(ask(question, { secret: running.worker.addToken(ownTeam) }))
      expect(await resultOf(ask(question, { secret: running.worker.addToken({ teamId: 'two' }) }))).toBe(`${expected}`)
      await running.stop()
    }
    await start()
  })

  test('without a team or a user shares with nobody', async () => {
    await start()
    const alone = { teamId: null, eventTeamId: null, userId: null }
    await resultOf(ask(question, { secret: running.worker.addToken(alone) }))
    expect(await resultOf(ask(question, { secret: running.worker.addToken(alone) }))).toBe('miss')
  })

  test('is refused with a revoked or unknown token, whatever is kept', async () => {
    await start()
    const secret = running.worker.addToken()
    await resultOf(ask(question, { secret }))
    for (const token of running.worker.tokens.values()) Object.assign(token, { revokedAt: 1 })
    expect((await ask(question, { secret })).status).toBe(401)
    expect((await ask(question, { secret: 'nobody' })).status).toBe(401)
    expect(running.seen.length).toBe(1)
  })

  test('is not sent to the provider when its token is revoked while an unreadable answer is looked at', async () => {
    await start()
    Object.assign(running.worker.upstreams[0] ?? {}, { kind: 'anthropic' })
    const unreadable = { ...kept, body: new TextEncoder().encode('{') }
    using _ = spyOn(AnswerCache.prototype, 'get').mockImplementation(() => {
      for (const { hash } of running.worker.tokens.values()) running.worker.revocations.add(hash)
      return unreadable
    })
    expect([(await ask()).status, running.seen.length]).toEqual([401, 0])
  })

  test('is refused a model that its token may not use, whatever is kept', async () => {
    await start()
    await resultOf(ask())
    const secret = running.worker.addToken({ modelFilter: ['other'] })
    expect((await ask(question, { secret })).status).toBe(403)
  })

  test('gets a new answer with no-cache, which is kept, and one that is not kept with no-store', async () => {
    let count = 0
    await start([cached()], () => Response.json({ ...completion, created: ++count }))
    const created = async (directive?: string) => {
      const answer = await ask(question, directive === undefined ? {} : { headers: { 'cache-control': directive } })
      const { created } = (await answer.json()) as { created: number }
      return [answer.headers.get('x-service-cache'), created]
    }
    expect(await created()).toEqual(['miss', 1])
    expect(await created('no-store')).toEqual(['bypass', 2])
    expect(await created()).toEqual(['hit', 1])
    expect(await created('max-age=0, No-Cache')).toEqual(['bypass', 3])
    expect(await created()).toEqual(['hit', 3])
    expect(lastOutcome()?.details?.cache).toBe('hit')
  })
})

describe('what changes the key', () => {
  test('a change of any policy that applies', async () => {
    const audit = policy({ id: 'audit', kind: 'audit', config: {} })
    await start([cached(), audit])
    await resultOf(ask())
    running.worker.policies = compilePolicySet([cached(), { ...audit, version: 2 }])
    expect([await resultOf(ask()), await resultOf(ask())]).toEqual(['miss', 'hit'])
    running.worker.policies = compilePolicySet([cached({}, { version: 2 }), { ...audit, version: 2 }])
    expect(await resultOf(ask())).toBe('miss')
  })

  test('another provider, and another address of it', async () => {
    await start()
    await resultOf(ask())
    const [upstream] = running.worker.upstreams
    running.worker.upstreams.splice(0, 1, testProvider({ id: 'p2', name: 'two', baseUrl: upstream?.baseUrl ?? null }))
    expect(await resultOf(ask())).toBe('miss')
    running.worker.upstreams.splice(0, 1, testProvider({ baseUrl: `${upstream?.baseUrl}/other` }))
    expect(await resultOf(ask())).toBe('miss')
  })

  test('the language of the caller: each is answered in its own', async () => {
    await start()
    running.worker.catalog.push(testModel({ id: 'gpt-test' }))
    await resultOf(ask())
    const asMessages = () =>
      fetch(`${running.url}/v1/messages`, {
        method: 'POST',
        headers: { 'x-api-key': running.secret, 'content-type': 'application/json' },
        body: JSON.stringify({ ...question, max_tokens: 50 }),
      })
    expect(await resultOf(asMessages())).toBe('miss')
    const again = await asMessages()
    expect(again.headers.get('x-service-cache')).toBe('hit')
    expect(await again.json()).toMatchObject({ type: 'message', content: [{ type: 'text', text: 'Hello' }] })
    expect(running.seen.length).toBe(2)
  })

  test('headers that reach the provider', async () => {
    await start()
    await resultOf(ask())
    expect(await resultOf(ask(question, { headers: { 'openai-beta': 'x' } }))).toBe('miss')
    expect(await resultOf(ask(question, { headers: { 'user-agent': 'x', 'idempotency-key': 'y' } }))).toBe('hit')
  })

  const clear = (model: string, version: number) =>
    Object.assign(running.worker.view, { version, cacheClears: new Map([[model, version]]) })

  test('a clearing of its model, or of all', async () => {
    await start()
    await resultOf(ask())
    clear('other', 8)
    expect(await resultOf(ask())).toBe('hit')
    clear('gpt-test', 9)
    expect([await resultOf(ask()), await resultOf(ask())]).toEqual(['miss', 'hit'])
    clear('*', 10)
    expect(await resultOf(ask())).toBe('miss')
  })

  test('a clearing while the answer is received: it is not kept', async () => {
    const held = Promise.withResolvers<undefined>()
    await start([cached()], async () => {
      await held.promise
      return Response.json(completion)
    })
    const asked = resultOf(ask())
    await eventually(() => running.seen.length === 1)
    clear('gpt-test', 8)
    held.resolve(undefined)
    expect([await asked, await resultOf(ask()), await resultOf(ask())]).toEqual(['miss', 'miss', 'hit'])
  })
})

describe('policies', () => {
  test('on requests run before a hit, and those on answers run again', async () => {
    const terms = (id: string, term: string, stage: 'pre_request' | 'pre_response') =>
      policy({ id, kind: 'term-filter', config: { terms: [term], action: 'block' }, stages: [stage] })
    const onlyBob = { when: 'token.user_id == "bob"' }
    await start([
      cached({ scope: 'organization' }),
      { ...terms('in', 'morning', 'pre_request'), ...onlyBob },
      { ...terms('out', 'Hello', 'pre_response'), when: 'token.user_id == "eve"' },
    ])
    const as = (userId: string) => ask(question, { secret: running.worker.addToken({ userId }) })
    expect(await resultOf(as('ann'))).toBe('miss')
    expect([(await as('bob')).status, (await as('eve')).status]).toEqual([400, 400])
    expect(lastOutcome()).toMatchObject({ verdict: 'block', details: { cache: 'hit' } })
    expect(await resultOf(as('ann'))).toBe('hit')
    expect(running.seen.length).toBe(1)
  })

  test('restore for each caller what they redacted for it', async () => {
    const restore = policy({ id: 'pii', kind: 'pii', config: { action: 'redact', restore: true } })
    await start([cached(), restore], (_, body) => {
      const content = JSON.parse(body).messages[0].content
      return Response.json({ ...completion, choices: [{ index: 0, message: { role: 'assistant', content } }] })
    })
    const text = async (mail: string) => {
      const answer = await ask({ ...question, messages: [{ role: 'user', content: `Write to ${mail}` }] })
      return [answer.headers.get('x-service-cache'), await answer.text()]
    }
    await text('ann@example.com')
    const [result, second] = await text('bob@example.org')
    expect(result).toBe('hit')
    expect(second).toContain('Write to bob@example.org')
    expect(second).not.toContain('ann@example.com')
  })

  test('a policy for a fallback alone does not take the fallback away', async () => {
    await start([cached({}, { targets: { models: ['spare'] } })], (_, body) =>
      JSON.parse(body).model === 'main' ? new Response('', { status: 500 }) : Response.json(completion),
    )
    running.worker.catalog.push(testModel({ id: 'main', fallbacks: ['spare'] }), testModel({ id: 'spare' }))
    expect((await ask({ ...question, model: 'main' })).status).toBe(200)
  })
})

describe('limits', () => {
  /** Two dollars a million tokens in, four out. */
  const price = compilePrice({ input_per_million: 2, output_per_million: 4 }, 'operator')
  const cost = 11 * 2000 + 7 * 4000
  const accounts = [{ id: 't', maxRequests: 5, maxBudget: 10_000_000, rateLimitRpm: null, rateLimitTpm: null }]

  async function startLimited(config: object, upstream?: Upstream) {
    await start([cached(config)], upstream)
    const usageLimits = new InMemoryLimits({ 'token/t/money': 10_000_000, 'token/t/requests': 5 })
    Object.assign(running.worker, { usageLimits })
    running.worker.catalog.push(testModel({ id: 'gpt-test', price, maxOutputTokens: 50 }))
    return { usageLimits, secret: running.worker.addToken({ accounts }) }
  }

  test('a hit takes a request and no money, and its event says what it saved', async () => {
    const { usageLimits, secret } = await startLimited({})
    await resultOf(ask(question, { secret }))
    const left = usageLimits.balances.get('token/t/money')
    expect(await resultOf(ask(question, { secret }))).toBe('hit')
    expect(usageLimits.balances.get('token/t/money')).toBe(left ?? 0)
    expect(usageLimits.balances.get('token/t/requests')).toBe(3)
    expect(lastOutcome()).toMatchObject({
      details: { cache: 'hit', cache_saved: cost / 1e9 },
      event_cost_attribution: { cost: 0, input_tokens: 0, output_tokens: 0, estimated: false },
    })
  })

  test('a hit costs the part of the price that its policy says, streamed too', async () => {
    const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 }
    const { usageLimits, secret } = await startLimited({ price_percent: 25 }, (_, body) =>
      JSON.parse(body).stream
        ? new Response(
            streamOf('Hello').replace(
              'data: [DONE]',
              `data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]`,
            ),
            eventStream,
          )
        : Response.json({ ...completion, usage }),
    )
    for (const body of [question, streamed]) {
      await resultOf(ask(body, { secret }))
      const left = usageLimits.balances.get('token/t/money') ?? 0
      expect(await resultOf(ask(body, { secret }))).toBe('hit')
      expect(usageLimits.balances.get('token/t/money')).toBe(left - cost / 4)
    }
  })

  test('a used-up budget or request limit refuses what the cache could answer', async () => {
    const { usageLimits, secret } = await startLimited({})
    await resultOf(ask(question, { secret }))
    usageLimits.balances.set('token/t/money', 1)
    expect((await ask(question, { secret })).status).toBe(402)
    usageLimits.balances.set('token/t/money', 10_000_000)
    usageLimits.balances.set('token/t/requests', 0)
    expect((await ask(question, { secret })).status).toBe(429)
    expect(running.seen.length).toBe(1)
  })
})

/** Tools that a provider runs, sent by a token with a budget: a default maximum of uses, or a refusal that names them. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { completion, startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { testProvider } from '../testing/worker.ts'

let running: TestGateway
let secret: string
beforeAll(async () => {
  running = await startTestGateway(({ url }) => {
    if (url.endsWith('/responses')) return Response.json({ object: 'response', status: 'completed', output: [] })
    return url.endsWith('/messages') ? Response.json({ type: 'message', content: [] }) : Response.json(completion)
  })
  const baseUrl = running.worker.upstreams[0]?.baseUrl ?? ''
  running.worker.upstreams.push(testProvider({ id: 'a', name: 'anthropic', kind: 'anthropic', baseUrl }))
  const own = { id: 'own', maxRequests: null, maxBudget: 100_000_000_000, rateLimitRpm: null, rateLimitTpm: null }
  secret = running.worker.addToken({ accounts: [own] })
})
afterAll(() => running.stop())

const ask = (path: string, body: object, presented = secret) =>
  fetch(`${running.url}/v1/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${presented}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
const sent = (): unknown => JSON.parse(running.seen.at(-1)?.body ?? '')
const codex = { model: 'gpt-5-codex', input: 'Hi', max_output_tokens: 100, tools: [{ type: 'web_search' }] }
const claude = {
  model: 'claude-sonnet-4-5',
  max_tokens: 100,
  messages: [{ role: 'user', content: 'Hi' }],
  tools: [
    { type: 'web_search_20250305', name: 'web_search' },
    { name: 'f', input_schema: {} },
  ],
}

test('sets a maximum of uses for web search of responses, and notes it', async () => {
  expect((await ask('responses', codex)).status).toBe(200)
  expect(sent()).toEqual({ ...codex, max_tool_calls: 3 })
  expect(running.worker.journal.outcomes().at(-1)?.details?.notes).toEqual(['tools.uses_limited'])
})

test('sets max_uses of the web tools of messages, and leaves other tools as they are', async () => {
  expect((await ask('messages', claude)).status).toBe(200)
  const [search, own] = claude.tools
  expect(sent()).toEqual({ ...claude, tools: [{ ...search, max_uses: 3 }, own] })
})

test("keeps the caller's own maximum", async () => {
  expect((await ask('responses', { ...codex, max_tool_calls: 1 })).status).toBe(200)
  expect(sent()).toEqual({ ...codex, max_tool_calls: 1 })
})

test('leaves web search out of a request that is translated, which then has a bound', async () => {
  const answered = {
    ...{ id: 'm', type: 'message', role: 'assistant', model: 'claude-sonnet-4-5', stop_reason: 'end_turn' },
    ...{ content: [{ type: 'text', text: 'Hi' }], usage: { input_tokens: 1, output_tokens: 1 } },
  }
  const other = await startTestGateway(() => Response.json(answered))
  try {
    const baseUrl = other.worker.upstreams[0]?.baseUrl ?? ''
    other.worker.upstreams.splice(0, 1, testProvider({ id: 'a', name: 'anthropic', kind: 'anthropic', baseUrl }))
    const own = { id: 'own', maxRequests: null, maxBudget: 100_000_000_000, rateLimitRpm: null, rateLimitTpm: null }
    const answer = await fetch(`${other.url}/v1/responses`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${other.worker.addToken({ accounts: [own] })}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ ...codex, model: 'claude-sonnet-4-5' }),
    })
    expect(answer.status).toBe(200)
    expect(JSON.parse(other.seen.at(-1)?.body ?? '')).not.toHaveProperty('tools')
  } finally {
    await other.stop()
  }
})

test('changes nothing for a token without a budget', async () => {
  expect((await ask('responses', codex, running.secret)).status).toBe(200)
  expect(sent()).toEqual(codex)
})

test('refuses a tool without a listed price, and says which tool and what to set', async () => {
  const refused = async (path: string, body: object) => {
    const answer = await ask(path, body)
    return [answer.status, await answer.json()]
  }
  const tools = [...codex.tools, { type: 'image_generation' }]
  expect(await refused('responses', { ...codex, tools })).toMatchObject([
    403,
    {
      error: {
        code: 'tokens.cost_unbounded',
        param: 'tools',
        message:
          'The provider runs the tool image_generation as often as the model asks for it: set max_tool_calls, or leave the tool out. A token with a budget cannot send a request whose cost has no upper bound',
      },
    },
  ])
  const running = { ...claude, tools: [{ type: 'code_execution_20250825', name: 'code_execution' }] }
  expect(await refused('messages', running)).toMatchObject([
    403,
    { error: { message: expect.stringContaining('the tool code_execution as often') } },
  ])
  const named = { ...claude, tools: [{ type: 'sk-secret', name: 'x' }] }
  expect(JSON.stringify(await refused('messages', named))).not.toContain('sk-secret')
  const chat = { model: 'gpt-5', max_tokens: 5, messages: claude.messages, web_search_options: {} }
  expect(await refused('chat/completions', chat)).toMatchObject([
    403,
    { error: { param: 'web_search_options', message: expect.stringContaining('leave web_search_options out') } },
  ])
})

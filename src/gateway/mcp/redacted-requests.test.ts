import { afterEach, expect, test } from 'bun:test'
import { eventually } from '../../../test/support/eventually.ts'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log/log.ts'
import type { Json } from '../../mcp/connection.ts'
import { compilePolicySet } from '../../policies/chain.ts'
import type { Span } from '../../telemetry/span.ts'
import { createTracer } from '../../telemetry/tracer.ts'
import { startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { openCaller, type TestMcpServer, testMcpServer, testMcpServers } from '../testing/mcp.ts'
import { testPolicy } from '../testing/worker.ts'
import { routedMethods } from './call.ts'

const email = 'bob@example.com'
const key = `sk-proj-${'A1b2C3d4E5f6G7h8'.repeat(3)}`

/** Requests whose name or address holds a word, by method. */
const naming: Readonly<Record<string, readonly ((word: string) => Json)[]>> = {
  'tools/call': [(word) => ({ name: `files__${word}`, arguments: {} })],
  'prompts/get': [(word) => ({ name: `files__${word}` })],
  'resources/read': [(word) => ({ uri: `mcp://files/file:///${word}` })],
  'resources/subscribe': [(word) => ({ uri: `mcp://files/file:///${word}` })],
  'resources/unsubscribe': [(word) => ({ uri: `mcp://files/file:///${word}` })],
  'completion/complete': [
    (word) => ({
      ref: { type: 'ref/resource', uri: `mcp://files/file:///${word}` },
      argument: { name: 'a', value: 'b' },
    }),
    (word) => ({ ref: { type: 'ref/prompt', name: `files__${word}` }, argument: { name: 'a', value: 'b' } }),
  ],
}

const cases = routedMethods.flatMap((method) =>
  (naming[method] ?? []).map((params): [string, (word: string) => Json] => [method, params]),
)

const spans: Span[] = []
let running: TestGateway | null = null
afterEach(async () => {
  await running?.stop()
  running = null
  spans.length = 0
})

/** A result of any method. */
const wholeResult = { content: [], messages: [], contents: [], completion: { values: [] } }

async function start(action: 'redact' | 'block' | null) {
  const tracer = createTracer({
    load: async () => async (ended) => void spans.push(...ended),
    samplePercent: 100,
    random: Math.random,
    clock: systemClock,
    log: silentLog,
    flushMilliseconds: 1,
  })
  const offered = [{ name: email }, { name: 'plain' }]
  const files: TestMcpServer = testMcpServer('files', {
    'tools/list': () => ({ tools: offered.map((tool) => ({ ...tool, inputSchema: { type: 'object' } })) }),
    'prompts/list': () => ({ prompts: offered }),
    ...Object.fromEntries(routedMethods.map((method) => [method, () => wholeResult])),
  })
  const gateway = await startTestGateway(() => Response.json({}), {}, tracer, testMcpServers(files))
  running = gateway
  if (action !== null) {
    gateway.worker.policies = compilePolicySet([
      testPolicy({ id: 'p', kind: 'pii', config: { types: ['email'], action } }),
      testPolicy({ id: 't', kind: 'term-filter', config: { terms: ['zebra'], action }, position: 2 }),
    ])
  }
  return { gateway, files, caller: await openCaller(gateway) }
}

/** All that is recorded so far. */
async function recorded({ worker: { journal } }: TestGateway): Promise<string> {
  await eventually(() => spans.length >= journal.outcomes().length)
  return JSON.stringify([journal.outcomes(), journal.refused, [...journal.opened.values()], [...journal.closed], spans])
}

test('has a test request for every method that goes to a server', () => {
  expect(Object.keys(naming).sort()).toEqual([...routedMethods].sort())
})

for (const [method, params] of cases) {
  test(`refuses ${method} when a policy redacts its target: ${Object.keys(params('')).join(', ')}`, async () => {
    const { gateway, files, caller } = await start('redact')
    for (const word of [email, 'zebra']) {
      const answer = await caller.ask(method, params(word))
      expect(answer).toMatchObject({
        error: {
          data: { code: 'policy_denied', verdictan: { verdict: 'DENY', reason_code: 'policy.target_changed' } },
        },
      })
      expect(JSON.stringify(files.requests)).not.toContain(word)
      const outcomes = gateway.worker.journal.outcomes()
      expect(outcomes.at(-1)).toMatchObject({ verdict: 'deny', reason_code: 'policy.target_changed' })
      const kept = await recorded(gateway)
      expect(kept).toContain(word === email ? 'files__' : 'policy.target_changed')
      expect(kept).not.toContain(word)
    }
  })

  test(`records no blocked word and no secret of ${method}: ${Object.keys(params('')).join(', ')}`, async () => {
    const { gateway, files, caller } = await start('block')
    for (const word of [email, 'zebra', key, `read_${key}`]) await caller.ask(method, params(word), `id ${word}`)
    expect(JSON.stringify(files.requests)).not.toContain('zebra')
    const kept = await recorded(gateway)
    for (const word of [email, 'zebra', key]) expect(kept).not.toContain(word)
  })

  test(`forwards ${method} unchanged when no policy changes its target: ${Object.keys(params('')).join(', ')}`, async () => {
    const { files, caller } = await start('redact')
    expect(await caller.ask(method, params('plain'))).toHaveProperty('result')
    const sent = files.requests.filter((asked) => asked.method === method)
    expect(JSON.stringify(sent)).toContain('plain')
    expect(JSON.stringify(sent)).not.toContain('files__')
    expect(JSON.stringify(sent)).not.toContain('mcp://')
  })
}

const addressed = cases.filter(([, params]) => JSON.stringify(params('')).includes('mcp://'))

test('has a test with an encoded address for every method that names an address', () => {
  expect(addressed.map(([method]) => method)).toEqual([
    'resources/read',
    'resources/subscribe',
    'resources/unsubscribe',
    'completion/complete',
  ])
})

for (const [method, params] of addressed) {
  test(`refuses ${method} when a policy matches the decoded address`, async () => {
    const { files, caller } = await start('redact')
    for (const word of ['bob%40example.com', 'z%65bra', '%7A%65%62%72%61', '%ff%7aebra', 'z%65bra%zz']) {
      expect([word, await caller.ask(method, params(word))]).toMatchObject([
        word,
        { error: { data: { verdictan: { reason_code: 'policy.target_changed' } } } },
      ])
    }
    expect(files.requests.filter((asked) => asked.method === method)).toEqual([])
    expect(await caller.ask(method, params('a%20b%2fc'))).toHaveProperty('result')
    expect(JSON.stringify(files.requests.filter((asked) => asked.method === method))).toContain('a%20b%2fc')
  })
}

test('masks a secret in a tool name without any policy', async () => {
  const { gateway, caller } = await start(null)
  for (const name of [key, `files__${key}`, `files__read_${key}`, `unknown__${key}`]) await caller.call(name)
  const kept = await recorded(gateway)
  expect(kept).toContain('files__[OPENAI_KEY]')
  expect(kept).toContain('files__read_[OPENAI_KEY]')
  expect(kept).not.toContain(key)
})

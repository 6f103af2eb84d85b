/** The rows of the header table: their form, and that no secret and no hop-by-hop header passes in either direction. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { neverPassed, toCaller, toProvider } from './header-rules.ts'

const response = {
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'm',
  output: [],
  usage: { input_tokens: 1, output_tokens: 1 },
}
let gateway: TestGateway
let answered: Record<string, string> = {}
beforeAll(async () => {
  gateway = await startTestGateway(() => Response.json(response, { headers: answered }))
})
afterAll(() => gateway.stop())
beforeEach(() => {
  gateway.seen.length = 0
  answered = {}
})

const ask = (headers: Record<string, string>) =>
  fetch(`${gateway.url}/v1/responses`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'm', input: 'Hello' }),
  })
const received = (name: string) => gateway.seen.at(-1)?.request.headers.get(name) ?? null

const secretsAndHops = [
  ...['authorization', 'proxy-authorization', 'cookie', 'set-cookie', 'x-api-key', 'api-key', 'x-goog-api-key'],
  ...['x-codex-api-key', 'x-codex-authorization', 'x-codex-session-token', 'x-codex-cookie', 'x-codex-client-secret'],
  ...['connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'proxy-connection', 'host'],
  ...['openai-organization', 'openai-project', 'chatgpt-account-id', 'content-encoding', 'x-forwarded-for', 'via'],
]

test('each row has a name in lower case, a reason, and is named once in its direction', () => {
  for (const rows of [toProvider, toCaller]) {
    for (const { name, reason } of rows) {
      expect(name).toMatch(/^[a-z][a-z0-9-]*\*?$/)
      expect(reason.length).toBeGreaterThan(15)
    }
    expect(new Set(rows.map(({ name }) => name)).size).toBe(rows.length)
  }
})

test('no row passes a header that carries a credential or belongs to a connection', () => {
  for (const name of secretsAndHops)
    expect([name, neverPassed.some(({ names }) => names.test(name))]).toEqual([name, true])
  for (const { name } of [...toProvider, ...toCaller]) {
    expect([name, neverPassed.some(({ names }) => names.test(name.replace('*', 'x')))]).toEqual([name, false])
  }
})

test('passes the headers of a Codex turn in both directions', async () => {
  answered = {
    'x-codex-turn-state': 'state-2',
    'x-codex-primary-used-percent': '12',
    'openai-model': 'm-2',
    'x-codex-credits-balance': '99',
    'set-cookie': 'a=b',
    'openai-organization': 'org-operator',
  }
  const answer = await ask({
    'x-codex-turn-state': 'state-1',
    'x-codex-turn-metadata': '{"turn":1}',
    originator: 'codex_cli_rs',
    'openai-beta': 'responses=experimental',
    'x-openai-subagent': 'review',
  })
  expect(answer.status).toBe(200)
  expect(received('x-codex-turn-state')).toBe('state-1')
  expect(received('x-codex-turn-metadata')).toBe('{"turn":1}')
  expect(received('originator')).toBe('codex_cli_rs')
  expect(received('openai-beta')).toBe('responses=experimental')
  expect(received('x-openai-subagent')).toBe('review')
  expect(answer.headers.get('x-codex-turn-state')).toBe('state-2')
  expect(answer.headers.get('x-codex-primary-used-percent')).toBe('12')
  expect(answer.headers.get('openai-model')).toBe('m-2')
  for (const name of ['x-codex-credits-balance', 'set-cookie', 'openai-organization']) {
    expect(answer.headers.get(name)).toBeNull()
  }
})

test('passes no secret of the caller, whatever it is called', async () => {
  const sent = secretsAndHops.filter((name) => /key|secret|token|cookie|account|organization|project/.test(name))
  await ask(Object.fromEntries(sent.map((name) => [name, `of-the-caller-${name}`])))
  const all = JSON.stringify([...(gateway.seen.at(-1)?.request.headers ?? [])])
  expect(all).not.toContain('of-the-caller')
  expect(received('authorization')).toBe('Bearer sk-operator')
})

test('drops a header that the Connection header names', async () => {
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port: Number(new URL(gateway.url).port),
    socket: { data() {} },
  })
  const body = JSON.stringify({ model: 'm', input: 'Hello' })
  socket.write(
    [
      'POST /v1/responses HTTP/1.1',
      'host: gateway',
      `authorization: Bearer ${gateway.secret}`,
      'content-type: application/json',
      `content-length: ${body.length}`,
      'connection: keep-alive, x-codex-hop',
      'x-codex-hop: one',
      'x-codex-other: two',
      '',
      body,
    ].join('\r\n'),
  )
  const until = Date.now() + 5000
  while (gateway.seen.length === 0 && Date.now() < until) await Bun.sleep(5)
  socket.end()
  expect([received('x-codex-hop'), received('x-codex-other')]).toEqual([null, 'two'])
})

test('the headers of Codex go to no provider that is asked in another family', async () => {
  await gateway.chat({ model: 'm', messages: [] }, { headers: { 'x-codex-turn-state': 's', originator: 'codex' } })
  expect([received('x-codex-turn-state'), received('originator')]).toEqual([null, null])
})

test('the handbook names every row', async () => {
  const page = await readFile(join(import.meta.dir, '../../handbook/reference/headers.md'), 'utf8')
  for (const { name } of [...toProvider, ...toCaller]) {
    const shown = name.replace(/^x-ratelimit-.*/, 'x-ratelimit-*')
    expect(page).toContain(`\`${shown}\``)
  }
})

/** Which client and which session an event names, by what each agent sends. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { eventually } from '../../../../test/support/eventually.ts'
import { parseObject } from '../../../languages/reading/json-value.ts'
import { completion, startTestGateway, type TestGateway } from '../../testing/gateway.ts'
import { calledTools } from './called-tools.ts'
import { clientOf, sessionOf } from './known-clients.ts'

let running: TestGateway
beforeAll(async () => {
  running = await startTestGateway(() => Response.json(completion), { drain_seconds: 0 })
})
afterAll(() => running.stop())

const session = '90a1730b-aa71-4b99-93e8-a7bcfdda441f'

let requests = 0

async function recorded(path: string, headers: Record<string, string>, more: object = {}) {
  const said = path === '/v1/responses' ? { input: 'x' } : { messages: [{ role: 'user', content: 'x' }], max_tokens: 5 }
  const body = { model: 'gpt-test', ...said, ...more }
  requests += 1
  const requestId = `request-${requests}`
  const answer = await fetch(running.url + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${running.secret}`,
      'content-type': 'application/json',
      'x-request-id': requestId,
      ...headers,
    },
    body: JSON.stringify(body),
  })
  await answer.text()
  return await eventually(() => {
    const outcome = running.worker.journal.outcomes().find(({ request_id }) => request_id === requestId)
    if (outcome === undefined) throw new Error('It is not recorded')
    return outcome.event_attribution
  })
}

test.each([
  [
    'claude-code',
    '/v1/messages',
    'claude-cli/2.1.328 (external, sdk-cli)',
    { 'x-claude-code-session-id': session },
    {},
  ],
  [
    'claude-code',
    '/v1/messages',
    'claude-cli/2.1.328 (external, cli)',
    {},
    { metadata: { user_id: JSON.stringify({ device_id: 'd', account_uuid: '', session_id: session }) } },
  ],
  [
    'claude-code',
    '/v1/messages',
    'claude-cli/1.0.60 (external, cli)',
    {},
    { metadata: { user_id: `user_${'a'.repeat(64)}_account__session_${session}` } },
  ],
  [
    'codex',
    '/v1/responses',
    'codex_exec/0.169.0 (Debian 12.0.0; x86_64)',
    { 'session-id': session, 'thread-id': 't' },
    {},
  ],
  ['codex', '/v1/responses', 'codex-tui/0.169.0', {}, { client_metadata: { session_id: session } }],
  ['codex', '/v1/responses', 'codex_cli_rs/0.40.0', { session_id: session }, {}],
  ['opencode', '/v1/chat/completions', 'opencode/1.18.33 runtime/bun', { 'x-session-affinity': session }, {}],
  ['opencode', '/v1/chat/completions', 'opencode/1.18.33 runtime/bun', { 'x-session-id': session }, {}],
  ['gemini-cli', '/v1/chat/completions', 'GeminiCLI-tui/0.61.0/gemini-3.1-pro', { 'x-session-id': session }, {}],
  ['cline', '/v1/chat/completions', 'Cline/3.65.0', { 'x-task-id': session }, {}],
  ['cursor', '/v1/chat/completions', 'Go-http-client/1.1', {}, { metadata: { cursorConversationId: session } }],
])('names %s and its session on %s for %s', async (client, path, userAgent, headers, more) => {
  expect(await recorded(path, { 'user-agent': userAgent, ...headers }, more)).toMatchObject({
    client,
    session_id: session,
  })
})

test('names neither a client nor a session for an unknown client, whatever headers of agents it sends', async () => {
  const headers = { 'user-agent': 'OpenAI/Python 2.20.0', 'session-id': session, 'x-task-id': session }
  const attribution = await recorded('/v1/chat/completions', headers)
  expect(attribution?.session_id).toBeNull()
  expect(attribution).not.toHaveProperty('client')
})

test('prefers the session that x-session-id names, and records none that is not printable or too long', async () => {
  const agent = { 'user-agent': 'claude-cli/2.1.328', 'x-claude-code-session-id': 'other' }
  expect(await recorded('/v1/messages', { ...agent, 'x-session-id': session })).toMatchObject({ session_id: session })
  const long = { ...agent, 'x-claude-code-session-id': 'x'.repeat(257) }
  expect(await recorded('/v1/messages', long)).toMatchObject({ client: 'claude-code', session_id: null })
  const wrong = await recorded('/v1/responses', { 'user-agent': 'codex/1' }, { client_metadata: { session_id: 7 } })
  expect(wrong).toMatchObject({ client: 'codex', session_id: null })
})

test('the captured requests of agents hold the members that the table names', async () => {
  const folder = join(import.meta.dir, '../../../../test/fakes/agent-requests')
  const bodyOf = async (file: string) => parseObject((await Bun.file(join(folder, file)).text()).split('\n{')[0] ?? '')
  const named = async (file: string, userAgent: string) => {
    const body = (await bodyOf(file)) ?? {}
    const client = clientOf(userAgent, body)
    return client === undefined ? null : sessionOf(client, new Headers(), body)
  }
  expect(await named('claude-code.json', 'claude-cli/2.1.328')).toMatch(/^[\da-f-]{36}$/)
  expect(await named('codex.json', 'codex_exec/0.169.0')).toMatch(/^[\da-f-]{36}$/)
  for (const file of ['opencode.json', 'aider.json', 'cline.json', 'gemini-cli.json']) {
    expect(await named(file, 'OpenAI/Python 2.20.0')).toBeNull()
  }
})

const call = (name: string) => ({ type: 'function', function: { name, arguments: '{}' } })

test('finds the tools that the model called last, in each language, and none of earlier turns', () => {
  const chat = [
    { role: 'user', content: 'x' },
    { role: 'assistant', tool_calls: [call('first')] },
    { role: 'tool', content: 'x' },
    { role: 'assistant', tool_calls: [call('read'), call('write')] },
    { role: 'tool', content: 'x' },
    { role: 'tool', content: 'x' },
  ]
  expect(calledTools('chat', { messages: chat })).toEqual(['read', 'write'])
  expect(calledTools('chat', { messages: [...chat, { role: 'user', content: 'next' }] })).toBeNull()
  const messages = [
    { role: 'assistant', content: [{ type: 'tool_use', name: 'first' }] },
    { role: 'user', content: [{ type: 'tool_result' }] },
    { role: 'assistant', content: [{ type: 'text' }, { type: 'tool_use', name: 'Bash' }] },
    { role: 'user', content: [{ type: 'tool_result' }, { type: 'text' }] },
  ]
  expect(calledTools('messages', { messages })).toEqual(['Bash'])
  const input = [
    { type: 'function_call', name: 'first' },
    { type: 'function_call_output' },
    { type: 'reasoning' },
    { type: 'function_call', name: 'exec_command' },
    { type: 'custom_tool_call', name: 'apply_patch' },
    { type: 'function_call_output' },
    { type: 'custom_tool_call_output' },
  ]
  expect(calledTools('responses', { input })).toEqual(['exec_command', 'apply_patch'])
  const contents = [
    { role: 'model', parts: [{ functionCall: { name: 'shell' } }] },
    { role: 'user', parts: [{ functionResponse: {} }] },
  ]
  expect(calledTools('gemini', { contents })).toEqual(['shell'])
  for (const broken of ['x', null, [null, 3, { role: 'assistant', tool_calls: 'x' }]])
    expect(calledTools('chat', { messages: broken })).toBeNull()
})

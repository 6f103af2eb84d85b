/** The opening requests of coding agents, with the members that they send, reach providers of every other language. */
import { describe, expect, test } from 'bun:test'
import type { LanguageName } from '../neutral.ts'
import { languages } from './languages.ts'
import { Lenience } from './lenience.ts'

const parameters = { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] }

const claudeCode = {
  model: 'm',
  max_tokens: 32_000,
  stream: true,
  system: [
    { type: 'text', text: 'x-anthropic-billing-header: cc_version=2.1.0; cc_entrypoint=cli;' },
    { type: 'text', text: 'You are Claude Code.', cache_control: { type: 'ephemeral', ttl: '1h', scope: 'global' } },
  ],
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: '<system-reminder>Skills</system-reminder>' },
        { type: 'text', text: 'List the files', cache_control: { type: 'ephemeral' } },
      ],
    },
    { role: 'system', content: [{ type: 'text', text: '# Environment' }], output_config: { effort: 'medium' } },
  ],
  tools: [
    { name: 'Bash', description: 'Runs a command', input_schema: parameters, eager_input_streaming: true },
    { name: 'Grep', description: 'Searches', input_schema: parameters, defer_loading: true },
    { type: 'web_search_20250305', name: 'web_search', max_uses: 8 },
  ],
  metadata: { user_id: '{"device_id":"d","account_uuid":"","session_id":"s"}' },
  thinking: { type: 'adaptive' },
  context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
  output_config: { effort: 'medium' },
}

const codex = {
  model: 'm',
  instructions: 'You are Codex.',
  input: [
    { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'Sandbox' }] },
    {
      type: 'message',
      role: 'user',
      id: 'msg_1',
      content: [{ type: 'input_text', text: 'List the files' }],
      internal_chat_message_metadata_passthrough: { turn_id: 't' },
    },
    { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'q' } },
  ],
  tools: [
    { type: 'function', name: 'exec_command', description: 'Runs', strict: false, parameters },
    {
      type: 'custom',
      name: 'apply_patch',
      description: 'Edits',
      format: { type: 'grammar', syntax: 'lark', definition: 'start: patch' },
    },
    {
      type: 'namespace',
      name: 'agents',
      description: 'Agents',
      tools: [{ type: 'function', name: 'spawn', description: 'Starts one', parameters }],
    },
    { type: 'web_search', external_web_access: false },
  ],
  tool_choice: 'auto',
  parallel_tool_calls: false,
  reasoning: { effort: 'medium', summary: 'auto', context: 'all_turns' },
  store: false,
  stream: true,
  include: ['reasoning.encrypted_content'],
  prompt_cache_key: 'thread',
  text: { verbosity: 'low' },
  client_metadata: { 'x-codex-installation-id': 'i' },
}

const opencode = {
  model: 'm',
  max_tokens: 32_000,
  messages: [
    { role: 'system', content: 'You are opencode.', cache_control: { type: 'ephemeral' } },
    { role: 'user', content: 'List the files', cache_control: { type: 'ephemeral' } },
    {
      role: 'assistant',
      content: '',
      tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'bash', arguments: '{"command":"ls"}' } }],
      cache_control: { type: 'ephemeral' },
    },
    { role: 'tool', tool_call_id: 'call_1', content: 'a.txt', cache_control: { type: 'ephemeral' } },
  ],
  tools: [{ type: 'function', function: { name: 'bash', description: 'Runs', parameters } }],
  tool_choice: 'auto',
  stream: true,
  stream_options: { include_usage: true },
}

const agents = [
  ['Claude Code', 'messages', claudeCode],
  ['Codex', 'responses', codex],
  ['opencode', 'chat', opencode],
] as const

const models: Partial<Record<LanguageName, string[]>> = {
  converse: ['anthropic.claude-sonnet-4-5-v1:0', 'meta.llama4-maverick-17b-instruct-v1:0'],
  messages: ['claude-sonnet-4-5', 'claude-opus-4-6'],
  gemini: ['gemini-2.5-pro', 'gemini-3-pro'],
}

function translate(from: LanguageName, body: object, to: LanguageName, model = 'm') {
  const lenience = new Lenience()
  const read = languages[from].caller?.readRequest({ ...body }, lenience)
  if (read === undefined) throw new Error('No caller')
  const sent = languages[to].provider.writeRequest({ ...read, model }, { lenience })
  return { sent, text: JSON.stringify(sent), notes: lenience.notes }
}

describe('the opening request of', () => {
  for (const [agent, from, body] of agents) {
    for (const { name: to } of Object.values(languages).map(({ provider }) => provider)) {
      if (from === to) continue
      for (const model of models[to] ?? ['gpt-5']) {
        test(`${agent} reaches ${model} in ${to}`, () => {
          const { text } = translate(from, body, to, model)
          expect(text).toContain('List the files')
          expect(text).toContain('Runs')
        })
      }
    }
  }
})

test('notes every member of an agent’s request that is not sent', () => {
  expect(translate('messages', claudeCode, 'chat').notes).toEqual([
    'translation.left_out:context_management',
    'translation.left_out:messages.output_config',
    'translation.left_out:tools.defer_loading',
    'translation.left_out:tools.web_search_20250305',
  ])
  expect(translate('responses', codex, 'gemini').notes.toSorted()).toEqual([
    'translation.left_out:client_metadata',
    'translation.left_out:input.internal_chat_message_metadata_passthrough',
    'translation.left_out:input.web_search_call',
    'translation.left_out:parallel_tool_calls',
    'translation.left_out:reasoning.context',
    'translation.left_out:text.verbosity',
    'translation.left_out:tools.web_search',
    'translation.replaced:tools.format',
  ])
  expect(translate('chat', opencode, 'messages').notes).toEqual([])
})

test('instructions inside a conversation stand before it where the provider takes them only there', () => {
  for (const to of ['gemini', 'converse'] as const) {
    const { sent, notes } = translate('messages', claudeCode, to, models[to]?.[0])
    expect(JSON.stringify(sent.systemInstruction ?? sent.system)).toContain('# Environment')
    expect(JSON.stringify(sent.contents ?? sent.messages)).not.toContain('# Environment')
    expect(notes).toContain('translation.replaced:messages.role')
  }
})

test('the result of a search for tools names the tools that it found', () => {
  const call = { type: 'tool_use', id: 'toolu_1', name: 'ToolSearch', input: { query: 'grep' } }
  const content = [{ type: 'tool_reference', tool_name: 'Grep' }]
  const turns = [
    { role: 'assistant', content: [call] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content }] },
  ]
  const { sent } = translate('messages', { ...claudeCode, messages: [...claudeCode.messages, ...turns] }, 'chat')
  expect(sent.messages).toContainEqual({ role: 'tool', tool_call_id: 'toolu_1', content: 'Grep' })
})

test('a cache marker beside the content of a chat message marks its last part', () => {
  const { sent } = translate('chat', opencode, 'messages')
  const marker = { cache_control: { type: 'ephemeral' } }
  expect(sent.system).toMatchObject([marker])
  expect(sent.messages).toMatchObject([
    { content: [marker] },
    { content: [{ type: 'tool_use', ...marker }] },
    { content: [{ type: 'tool_result', ...marker }] },
  ])
})

describe('a tool that only its own provider runs', () => {
  const search = { type: 'web_search', external_web_access: true }
  const question = { model: 'm', input: 'hi', parallel_tool_calls: true }

  test('leaves no member about tools behind when it was the only tool', () => {
    const { sent } = translate('responses', { ...question, tools: [search], tool_choice: 'auto' }, 'chat')
    expect(Object.keys(sent).filter((name) => name.includes('tool'))).toEqual([])
  })

  test('is refused if the request requires it', () => {
    const refusal = expect.objectContaining({ code: 'translation_unsupported', param: 'tool_choice' })
    for (const tool_choice of ['required', { type: 'web_search' }]) {
      expect(() => translate('responses', { ...question, tools: [search], tool_choice }, 'chat')).toThrow(refusal)
    }
    const hosted = { type: 'web_search_20250305', name: 'web_search' }
    const messages = [{ role: 'user', content: 'hi' }]
    for (const tool_choice of [{ type: 'any' }, { type: 'tool', name: 'web_search' }]) {
      const body = { model: 'm', max_tokens: 9, messages, tools: [hosted], tool_choice }
      expect(() => translate('messages', body, 'chat')).toThrow(refusal)
    }
  })
})

test('JSON without a schema becomes an instruction where the provider has JSON by a schema only', () => {
  const messages = [{ role: 'user', content: 'Say it in JSON' }]
  const body = { model: 'm', messages, response_format: { type: 'json_object' } }
  for (const to of ['messages', 'converse'] as const) {
    const { text, notes } = translate('chat', body, to)
    expect(text).toContain('valid JSON object')
    expect(notes).toEqual(['translation.replaced:response_format'])
  }
  expect(translate('chat', body, 'gemini').notes).toEqual([])
})

describe('an effort that the model does not have', () => {
  const asking = { model: 'm', messages: [{ role: 'user', content: 'hi' }], max_tokens: 32_000 }

  test('becomes the nearest one, and is noted', () => {
    const cases = [
      ['messages', 'claude-opus-4-6', 'minimal', '"effort":"low"'],
      ['gemini', 'gemini-2.5-pro', 'max', '"thinkingBudget":24576'],
      ['gemini', 'gemini-3-pro', 'xhigh', '"thinkingLevel":"HIGH"'],
      ['gemini', 'gemini-3-pro', 'none', '"thinkingLevel":"MINIMAL"'],
      ['converse', 'openai.gpt-oss-120b-1:0', 'xhigh', '"reasoning_effort":"high"'],
      ['converse', 'openai.gpt-oss-120b-1:0', 'minimal', '"reasoning_effort":"low"'],
    ] as const
    for (const [to, model, reasoning_effort, expected] of cases) {
      const { text, notes } = translate('chat', { ...asking, reasoning_effort }, to, model)
      expect(text).toContain(expected)
      expect(notes).toEqual(['translation.replaced:reasoning_effort'])
    }
  })
})

test('refuses edits of the conversation that a provider cannot make', () => {
  const body = { ...claudeCode, context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] } }
  expect(() => translate('messages', body, 'chat')).toThrow(expect.objectContaining({ param: 'context_management' }))
})

test('bounds the notes of a request with many kinds of tools', () => {
  const tools = Array.from({ length: 100 }, (_, index) => ({ type: `kind_${index}` }))
  expect(translate('responses', { model: 'm', input: 'hi', tools }, 'chat').notes).toHaveLength(20)
})

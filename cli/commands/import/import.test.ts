import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { runCommandLine } from '../../command/command.ts'
import { recordingTerminal } from '../../testing/terminal.ts'
import { readSources } from '../apply/files.ts'
import { wantedOf } from '../apply/wanted.ts'
import { importCommand } from './import.ts'

const folder = mkdtempSync(join(tmpdir(), 'import-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** What is written, which apply must take, and what is named. */
async function imported(format: string, name: string, text: string, ...flags: string[]) {
  const [path, made] = [join(folder, name), join(folder, `${name}.made.yaml`)]
  writeFileSync(path, text)
  const terminal = recordingTerminal()
  await runCommandLine(importCommand(terminal), [format, path, ...flags], terminal)
  writeFileSync(made, terminal.written())
  wantedOf(await readSources(made, () => Promise.reject(new Error('It reads no input'))))
  const notes = terminal.noted().replaceAll(`${folder}/`, '').trimEnd().split('\n')
  return { file: parse(terminal.written()), text: terminal.written(), notes }
}

const litellm = `model_list:
  - model_name: gpt-4o
    litellm_params:
      model: azure/gpt-4o-eu
      api_base: https://eu.openai.azure.com/
      api_key: os.environ/AZURE_KEY
      api_version: "2024-02-01"
      rpm: 6
      weight: 3
  - model_name: gpt-4o
    litellm_params: { model: openai/gpt-4o, api_key: os.environ/OPENAI_API_KEY, input_cost_per_token: 0.0000025, output_cost_per_token: 0.00001 }
  - model_name: claude
    litellm_params:
      model: anthropic/claude-sonnet-4-5
      api_key: sk-ant-this-is-a-secret
      timeout: 30
    model_info: { mode: chat }
  - model_name: local
    litellm_params: { model: openai/facebook/opt-125m, api_base: "http://10.0.0.5:8000/v1", api_key: none }
  - model_name: "groq/*"
    litellm_params: { model: "groq/*", api_key: os.environ/GROQ_API_KEY }
  - model_name: lost
    litellm_params: { model: replicate/llama }
litellm_settings:
  drop_params: true
  num_retries: 3
  fallbacks: [{ gpt-4o: [claude, unknown] }, { claude: [gpt-4] }, { gone: [claude] }]
  max_budget: 100
  budget_duration: 30d
router_settings:
  routing_strategy: latency-based-routing
  model_group_alias: { gpt-4: gpt-4o }
general_settings:
  master_key: sk-1234
mcp_servers:
  deepwiki: { url: "https://mcp.deepwiki.com/mcp", transport: http }
`

test('litellm: deployments become providers and targets, and what is left is named with its line', async () => {
  const { file, text, notes } = await imported('litellm', 'config.yaml', litellm)
  expect(text).not.toMatch(/sk-ant|sk-1234/)
  expect(file.providers).toEqual([
    { name: 'azure', preset: 'azure', base_url: 'https://eu.openai.azure.com/', api_key: { env: 'AZURE_KEY' } },
    { name: 'openai', preset: 'openai', api_key: { env: 'OPENAI_API_KEY' } },
    { name: 'anthropic', preset: 'anthropic', api_key: { env: 'ANTHROPIC_API_KEY' }, timeouts: { total_seconds: 30 } },
    {
      name: 'openai-4',
      preset: 'openai',
      base_url: 'http://10.0.0.5:8000/v1',
      api_key: { env: 'OPENAI_4_API_KEY' },
    },
    { name: 'groq', preset: 'groq', api_key: { env: 'GROQ_API_KEY' } },
  ])
  const price = { input_per_million: 2.5, output_per_million: 10 }
  expect(file.models).toEqual([
    {
      name: 'gpt-4o',
      targets: [
        { provider: 'azure', upstream_model: 'gpt-4o-eu', weight: 3 },
        { provider: 'openai', upstream_model: 'gpt-4o', price },
      ],
      strategy: 'lowest_latency',
      fallbacks: ['claude'],
    },
    {
      name: 'claude',
      targets: [{ provider: 'anthropic', upstream_model: 'claude-sonnet-4-5' }],
      fallbacks: ['gpt-4'],
    },
    { name: 'local', targets: [{ provider: 'openai-4', upstream_model: 'facebook/opt-125m' }] },
    {
      name: 'gpt-4',
      targets: [
        { provider: 'azure', upstream_model: 'gpt-4o-eu', weight: 3 },
        { provider: 'openai', upstream_model: 'gpt-4o', price },
      ],
      strategy: 'lowest_latency',
      fallbacks: ['claude'],
    },
  ])
  expect(file.budgets).toEqual([{ name: 'litellm', max_budget: 100, window: 'month', scope: { kind: 'organization' } }])
  expect(file.mcp_servers).toEqual([{ name: 'deepwiki', url: 'https://mcp.deepwiki.com/mcp' }])
  const named = [
    'config.yaml:7:7: model_list[0].litellm_params.api_version: The provider kind says the version',
    'config.yaml:8:7: model_list[0].litellm_params.rpm: Rates are of tokens',
    'config.yaml:15:7: model_list[2].litellm_params.api_key: The secret itself stands here and is not copied',
    'config.yaml:17:19: model_list[2].model_info.mode: has no counterpart',
    'config.yaml:20:5: model_list[4].model_name: every model of the provider groq',
    'config.yaml:23:23: model_list[5].litellm_params.model: There is no provider replicate',
    'config.yaml:25:3: litellm_settings.drop_params: has no counterpart',
    'config.yaml:26:3: litellm_settings.num_retries: How often',
    'config.yaml:27:34: litellm_settings.fallbacks[0].gpt-4o[1]: names no model of the list, so it is no fallback',
    'config.yaml:27:69: litellm_settings.fallbacks[2].gone: names no model of the list',
    'config.yaml:34:3: general_settings.master_key: The administrator has a token',
  ]
  for (const [index, line] of named.entries()) {
    expect([index, notes.some((note) => note.startsWith(line))]).toEqual([index, true])
  }
})

test('portkey: targets of a config become tiers or weights of a model', async () => {
  const config = {
    strategy: { mode: 'fallback', on_status_codes: [429] },
    retry: { attempts: 5 },
    targets: [
      { provider: 'openai', virtual_key: 'main-258f4d', override_params: { model: 'gpt-4o', max_tokens: 5 } },
      {
        strategy: { mode: 'loadbalance' },
        targets: [
          { provider: 'anthropic', api_key: 'sk-ant-secret', weight: 0.7, override_params: { model: 'claude' } },
          { provider: '@groq', weight: 0.3, override_params: { model: '@groq/llama' }, request_timeout: 1500 },
        ],
      },
    ],
  }
  const { file, text, notes } = await imported('portkey', 'chat.json', JSON.stringify(config, null, 2))
  expect(text).not.toContain('sk-ant')
  expect(file).toEqual({
    providers: [
      { name: 'main-258f4d', preset: 'openai', api_key: { env: 'MAIN_258F4D_API_KEY' } },
      { name: 'anthropic', preset: 'anthropic', api_key: { env: 'ANTHROPIC_API_KEY' } },
      { name: 'groq', preset: 'groq', api_key: { env: 'GROQ_API_KEY' }, timeouts: { total_seconds: 2 } },
    ],
    models: [
      {
        name: 'chat',
        targets: [
          { provider: 'main-258f4d', upstream_model: 'gpt-4o', tier: 1 },
          { provider: 'anthropic', upstream_model: 'claude', tier: 2, weight: 0.7 },
          { provider: 'groq', upstream_model: 'llama', tier: 2, weight: 0.3 },
        ],
        strategy: 'weighted',
      },
    ],
  })
  const all = notes.join('\n')
  for (const part of [
    'strategy.on_status_codes: What is tried',
    'retry: How often',
    'override_params.max_tokens: Write a policy',
    'api_key: The secret itself',
  ]) {
    expect(all).toContain(part)
  }
  const single = await imported(
    'portkey',
    'one.json',
    '{"provider": "openai", "override_params": {"model": "o3"}}',
    '--model',
    'mine',
  )
  expect(single.file.models).toEqual([{ name: 'mine', targets: [{ provider: 'openai', upstream_model: 'o3' }] }])
})

test('bifrost: providers keep their names, keys are references, virtual keys become access policies', async () => {
  const config = {
    $schema: 'https://www.getbifrost.ai/schema',
    client: { enable_logging: true },
    providers: {
      openai: {
        keys: [
          { name: 'a', value: 'env.OPENAI_A', models: ['gpt-4o'], weight: 1, aliases: { fast: 'gpt-4o-mini' } },
          { name: 'b', value: 'env.OPENAI_B', models: ['gpt-4o'], weight: 0.5 },
        ],
        network_config: { default_request_timeout_in_seconds: 30, max_retries: 2, extra_headers: { 'X-Org': 'acme' } },
      },
      anthropic: { keys: [{ name: 'c', value: 'sk-ant-secret', models: ['*'], weight: 1 }] },
      mine: { keys: [], network_config: { base_url: 'http://10.0.0.7:8000/v1' } },
    },
    governance: {
      budgets: [
        { id: 'b1', max_limit: 50, reset_duration: '1M' },
        { id: 'b2', max_limit: 5, reset_duration: '1h' },
      ],
      rate_limits: [
        {
          id: 'r1',
          request_max_limit: 60,
          request_reset_duration: '1m',
          token_max_limit: 9,
          token_reset_duration: '1h',
        },
      ],
      teams: [{ id: 't', name: 'platform', budget_id: 'b1' }],
      virtual_keys: [
        {
          id: 'vk',
          name: 'ci',
          value: 'env.VK_CI',
          budget_id: 'b2',
          rate_limit_id: 'r1',
          provider_configs: [{ provider: 'openai', allowed_models: ['gpt-4o'], weight: 1 }],
        },
      ],
    },
    mcp: {
      client_configs: [
        {
          name: 'files',
          connection_type: 'stdio',
          stdio_config: { command: 'npx', args: ['-y', 'x'], envs: ['HOME'] },
        },
      ],
    },
  }
  const { file, text, notes } = await imported('bifrost', 'config.json', JSON.stringify(config, null, 2))
  expect(text).not.toMatch(/sk-ant|acme/)
  expect(file).toEqual({
    teams: [{ name: 'platform' }],
    providers: [
      {
        name: 'openai',
        preset: 'openai',
        api_key: { env: 'OPENAI_A' },
        more_api_keys: { command: ['sh', '-c', 'echo "$OPENAI_B"'] },
        headers: { 'X-Org': { env: 'OPENAI_X_ORG' } },
        allow_unlisted_models: false,
        timeouts: { total_seconds: 30 },
      },
      { name: 'anthropic', preset: 'anthropic', api_key: { env: 'ANTHROPIC_API_KEY' }, allow_unlisted_models: true },
      { name: 'mine', kind: 'openai', base_url: 'http://10.0.0.7:8000/v1', allow_unlisted_models: true },
    ],
    models: [
      { name: 'openai/gpt-4o', targets: [{ provider: 'openai', upstream_model: 'gpt-4o' }] },
      { name: 'openai/fast', targets: [{ provider: 'openai', upstream_model: 'gpt-4o-mini' }] },
    ],
    access_policies: [
      { name: 'ci', requests_per_minute: 60, providers: ['openai'], models: ['gpt-4o', 'openai/gpt-4o'] },
    ],
    budgets: [
      { name: 'platform', max_budget: 50, window: 'month', scope: { kind: 'team', name: 'platform' } },
      { name: 'ci', max_budget: 5, window: 'month', scope: { kind: 'token' } },
    ],
    mcp_servers: [
      { name: 'files', command: { program: 'npx', args: ['-y', 'x'] }, environment: { HOME: { env: 'HOME' } } },
    ],
  })
  const all = notes.join('\n')
  for (const part of [
    'client: These are settings',
    'providers.openai.keys: Keys are used in turn',
    'max_retries: How often',
    'reset_duration: A budget is for',
    'token_reset_duration: Rates are by the minute',
    'virtual_keys[0].value: A token is made by gatehouse token create',
    'provider_configs[0].weight: has no counterpart',
  ]) {
    expect(all).toContain(part)
  }
})

test('a file that holds nothing of the format is refused', async () => {
  await expect(imported('litellm', 'empty.yaml', 'a: 1\n')).rejects.toThrow('nothing that could be carried over')
})
